//! What an execution needs to send, worked out once from the job's spec, its history and the configuration.

use super::Shared;
use crate::agent::{self, JobSpec};
use crate::failure::{ErrorDocument, codes};
use crate::provider::{Call, Provider};
use crate::recovery::Policy;
use crate::store::{ClaimedTurn, History, Store};

/// What an execution needs to send, worked out once.
pub(super) struct Plan {
    pub spec: JobSpec,
    pub history: History,
    pub call: Call,
    pub provider: Provider,
    pub policy: Policy,
    pub redact_vendor_messages: bool,
}

/// Why there is no plan.
pub(super) enum Unplanned {
    StoreAway,
    /// This worker's configuration lacks the job's provider entry; another's may have it.
    NotHere,
    /// The error, and the job's result, if it has said anything.
    Failed(Box<ErrorDocument>, Option<String>),
}

impl Plan {
    pub(super) async fn of<S: Store>(shared: &Shared<S>, turn: &ClaimedTurn) -> Result<Self, Unplanned> {
        let failed = |code: &str, message: String| Unplanned::Failed(Box::new(ErrorDocument::own(code, message)), None);
        let spec = JobSpec::parse(&turn.spec)
            .map_err(|error| failed(codes::SPEC_UNREADABLE, format!("the stored job cannot be read: {error}")))?;
        let entry = shared.settings.entries.get(&turn.entry);
        let (Some(entry), Some(provider)) = (entry, shared.settings.providers.get(&turn.entry)) else {
            return Err(Unplanned::NotHere);
        };
        let name = spec.policy.as_deref().unwrap_or(&entry.policy);
        let policy = shared.settings.policies.get(name).cloned().ok_or_else(|| {
            failed(codes::POLICY_UNKNOWN, format!("no recovery policy `{name}` is configured on this worker"))
        })?;
        // A first turn has nothing behind it but its spec, unless somebody told it something.
        let mut history = if turn.seq > 1 || turn.told {
            shared.store.history(turn.job_id).await.map_err(|error| {
                tracing::warn!(job.id = %turn.job_id, %error, "the transcript could not be read; the turn goes back");
                Unplanned::StoreAway
            })?
        } else {
            History::default()
        };
        // What it was told while it ran is read by the turn behind it, also where this one is sent once more.
        history.inbox.retain(|row| row.seq <= turn.seq);
        if let Some((error, result)) = agent::turn_refused(&spec, &history) {
            return Err(Unplanned::Failed(Box::new(error), result));
        }
        let mut call = agent::next_call(&spec, &history);
        if let Call::Chat(chat) = &mut call {
            chat.may_ask_again = policy.asks_again_without_stream(spec.delivery);
        }
        Ok(Self {
            spec,
            history,
            call,
            provider: provider.clone(),
            policy,
            redact_vendor_messages: entry.redact_vendor_messages,
        })
    }
}
