//! Failures and situations, as plain as they come, to be varied by the tests.

use reprieve::failure::{Allowance, Cause, Class, Failure, Reach};
use reprieve::recovery::{Delivery, OnTruncated, Situation, Spoken};

pub const NOW_MS: i64 = 1_790_000_000_000;

pub fn failure(class: Class, cause: Cause, http_status: Option<u16>) -> Failure {
    let retryable = match class {
        Class::RateLimit | Class::Timeout | Class::Unavailable => true,
        Class::ProviderError => cause == Cause::Incomplete || http_status.is_some_and(|status| status >= 500),
        Class::Quota
        | Class::Authentication
        | Class::ContentFiltered
        | Class::ContextWindowExceeded
        | Class::InvalidRequest => false,
    };
    Failure {
        class,
        cause,
        retryable,
        http_status,
        phase: None,
        detail: None,
        provider_code: None,
        provider_type: None,
        request_id: None,
        finish_reason: None,
        retry_after_secs: None,
        retry_after_stops_strict: false,
        attempts: None,
        allowance: None,
        per_day: false,
        limit: None,
        resume_at_ms: None,
        skew_ms: 0,
        evidence: Vec::new(),
        reach: Reach::Model,
        concerns_key: false,
        concurrency: false,
        inside_2xx: false,
        cancelled_at: None,
        rule: None,
        rules_version: 1,
        received_ms: NOW_MS,
        vendor_message: None,
    }
}

pub fn rate(reset_in_ms: Option<i64>) -> Failure {
    Failure {
        resume_at_ms: reset_in_ms.map(|in_ms| NOW_MS + in_ms),
        ..failure(Class::RateLimit, Cause::RateLimit, Some(429))
    }
}

pub fn quota(allowance: Allowance, reset_in_ms: Option<i64>) -> Failure {
    Failure {
        allowance: Some(allowance),
        retryable: reset_in_ms.is_some(),
        resume_at_ms: reset_in_ms.map(|in_ms| NOW_MS + in_ms),
        ..failure(Class::Quota, Cause::UsageLimit, Some(429))
    }
}

pub fn unavailable(wait_ms: Option<i64>) -> Failure {
    Failure {
        resume_at_ms: wait_ms.map(|in_ms| NOW_MS + in_ms),
        ..failure(Class::Unavailable, Cause::ProviderError, Some(503))
    }
}

pub fn dropped() -> Failure {
    failure(Class::Unavailable, Cause::Transport, None)
}

pub fn incomplete() -> Failure {
    failure(Class::ProviderError, Cause::Incomplete, None)
}

pub fn cap() -> Failure {
    failure(Class::InvalidRequest, Cause::OutputLimit, None)
}

/// The first send of a first execution, unbounded.
pub fn first() -> Situation {
    Situation {
        now_ms: NOW_MS,
        sends: 1,
        executions: 0,
        barren: 0,
        turn_left_ms: None,
        deadline_ms: None,
        spoken: Spoken::Nothing,
        repairs: 0,
        deferrals: 0,
        waiting_since_ms: None,
        delivery: Delivery::AtLeastOnce,
        structured_output: false,
        on_truncated: OnTruncated::Continue,
        jitter: 0.0,
    }
}
