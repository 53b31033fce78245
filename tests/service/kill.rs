//! SIGKILL at random instants: nothing acknowledged is lost, nothing ends twice, nothing resumes before its reset.
