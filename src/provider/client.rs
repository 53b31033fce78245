//! The one HTTP client of a provider entry: ours, given to genai and used by raw turns.

use crate::config::Timeouts;
use std::time::Duration;

/// How far reqwest's own read timeout stands above the waits that genai and we name, so that the named error wins.
const READ_TIMEOUT_MARGIN: Duration = Duration::from_secs(30);
const H2_PING_INTERVAL: Duration = Duration::from_secs(15);
const H2_PING_TIMEOUT: Duration = Duration::from_secs(15);
const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
const TCP_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const TCP_KEEPALIVE_RETRIES: u32 = 3;

/// Builds the client. `idle`: connections kept per host, so that a full house of sends finds its connections again.
pub(super) fn build(timeouts: Timeouts, idle: usize) -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        // The default resends on its own, uncounted.
        .retry(reqwest::retry::never())
        // The default follows a redirect to another host with `x-api-key` in hand; here a 3xx is a response.
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(millis(timeouts.connect_ms))
        .read_timeout(millis(timeouts.read_ms.max(timeouts.headers_ms)) + READ_TIMEOUT_MARGIN)
        .http2_keep_alive_interval(Some(H2_PING_INTERVAL))
        .http2_keep_alive_timeout(H2_PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .tcp_keepalive(Some(TCP_KEEPALIVE))
        .tcp_keepalive_interval(Some(TCP_KEEPALIVE_INTERVAL))
        .tcp_keepalive_retries(Some(TCP_KEEPALIVE_RETRIES))
        .pool_max_idle_per_host(idle)
        .build()
}

/// A configured number of milliseconds; what is negative counts as 0.
pub(super) fn millis(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
