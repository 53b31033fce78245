//! The `reprieve` binary: hands the arguments to the command line and exits with its code.

fn main() -> std::process::ExitCode {
    reprieve::cli::main()
}
