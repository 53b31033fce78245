//! What a queue consists of: every table but that of the workers, with the columns that both databases have, in the order
//! in which a row's parents come before it. A test holds this list against the schema of each database.

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Id,
    Int,
    Text,
}

/// One table. Names of columns are separated by spaces.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub name: &'static str,
    /// What its rows are read in the order of: unique.
    pub key: &'static str,
    pub ids: &'static str,
    pub ints: &'static str,
    pub texts: &'static str,
    /// Columns whose texts can be long: how many rows are read at once depends on how long they are.
    pub long: &'static str,
}

/// A column, and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
}

impl Table {
    /// Every column, in the order in which rows are written and reckoned.
    pub fn columns(&self) -> impl Iterator<Item = Column> {
        let of = |names: &'static str, kind| names.split_whitespace().map(move |name| Column { name, kind });
        of(self.ids, Kind::Id).chain(of(self.ints, Kind::Int)).chain(of(self.texts, Kind::Text))
    }

    /// Where the columns of the key stand among [`Table::columns`].
    pub fn key_places(&self) -> Vec<usize> {
        let place = |key| self.columns().position(|column| column.name == key);
        self.key.split_whitespace().filter_map(place).collect()
    }

    /// Its columns as SQL: quoted, some are words of SQL.
    pub fn listed(&self) -> String {
        listed(self.columns().map(|column| column.name))
    }

    pub fn key_listed(&self) -> String {
        listed(self.key.split_whitespace())
    }
}

fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

pub const TABLES: &[Table] = &[
    Table {
        name: "scopes",
        key: "scope_id",
        ids: "",
        ints: "scope_id account_id max_in_flight flow_limit flow_threshold flow_answered in_flight barren",
        texts: "provider account model",
        long: "",
    },
    Table {
        name: "lanes",
        key: "lane_id",
        ids: "",
        ints: "lane_id scope_id ready served minute claims claims_before",
        texts: "queue tenant",
        long: "",
    },
    Table { name: "queues", key: "queue", ids: "", ints: "paused_ms", texts: "queue paused_by pause_reason", long: "" },
    Table {
        name: "schedules",
        key: "schedule_id",
        ids: "schedule_id",
        ints: "paused_ms next_ms created_ms",
        texts: "name cron zone spec catch_up overlap paused_by pause_reason",
        long: "spec",
    },
    Table {
        name: "schedule_runs",
        key: "schedule_id nominal_ms",
        ids: "schedule_id job_id",
        ints: "nominal_ms fired_ms",
        texts: "outcome error",
        long: "error",
    },
    Table {
        name: "jobs",
        key: "job_id",
        ids: "job_id retry_of schedule_id",
        ints: "lane_id created_ms deadline_ms finished_ms ended_no priority pruned",
        texts: "state entry key_tenant key digest spec result error",
        long: "spec result error",
    },
    Table { name: "labels", key: "job_id key", ids: "job_id", ints: "", texts: "key value", long: "" },
    Table {
        name: "turns",
        key: "job_id",
        ids: "job_id",
        ints: "lane_id rank_ms due_ms deadline_ms waiting_since_ms worker_no fence claimed_ms permit_no parked_ms \
               wait_until_ms cancel_ms seq executions deferrals repairs lost priority state in_flight paused_ms told once",
        texts: "paused_by pause_reason",
        long: "",
    },
    Table {
        name: "inbox",
        key: "job_id seq n",
        ids: "job_id",
        ints: "seq n at_ms",
        texts: "kind body key",
        long: "body",
    },
    Table {
        name: "turn_records",
        key: "job_id fence",
        ids: "job_id send_tests_job",
        ints: "fence seq started_ms ended_ms attempts input_tokens output_tokens total_tokens http_status rules_version \
               resume_at_ms skew_ms received_ms send_n send_permit_ms send_started_ms send_first_byte_ms send_ended_ms \
               send_http_status send_wait_ms send_tests_fence send_tests_n send_tests_resume_ms",
        texts: "outcome cut error response class cause code rule decision phase request_id provider_code provider_type \
                finish_reason provider_model send_outcome send_cause send_class send_error send_wait_source",
        long: "error response send_error",
    },
    Table {
        name: "sends",
        key: "job_id fence n",
        ids: "job_id tests_job",
        ints: "fence n seq permit_ms started_ms first_byte_ms ended_ms http_status wait_ms tests_fence tests_n \
               tests_resume_ms",
        texts: "outcome cause class error wait_source",
        long: "error",
    },
    Table {
        name: "reset_evidence",
        key: "job_id fence n",
        ids: "job_id",
        ints: "fence n received_ms reset_at_ms resume_at_ms skew_ms rules_version lane_id",
        texts: "source_kind source_name raw limit_kind cause rule candidates",
        long: "candidates",
    },
    Table {
        name: "holds",
        key: "hold_id",
        ids: "hold_id refusal_job probe_job",
        ints: "scope_id opened_ms dated_no until_ms refusal_fence refusal_n extended barren probe_worker probe_fence \
               probe_since_ms ended_ms",
        texts: "cause kind source raw end",
        long: "",
    },
    Table {
        name: "hold_events",
        key: "event_no",
        ids: "hold_id job_id",
        ints: "event_no at_ms until_ms barren fence n",
        texts: "event by reason",
        long: "",
    },
];

/// Columns that one database keeps and the other does not, as `database table.column`: computed there from what is moved,
/// or without meaning elsewhere.
pub const OWN: &[&str] = &[
    "sqlite turn_records.record_no",
    "sqlite jobs.error_cause",
    "sqlite jobs.error_class",
    "sqlite jobs.error_code",
    "sqlite jobs.error_http",
    "postgres jobs.error_cause",
    "postgres jobs.error_class",
    "postgres jobs.error_code",
    "postgres jobs.error_http",
    "postgres reset_evidence.candidate_kinds",
    "postgres reset_evidence.candidate_names",
    "postgres reset_evidence.candidate_verdicts",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_long_columns_are_columns_and_no_column_stands_twice() {
        for table in TABLES {
            let names: Vec<&str> = table.columns().map(|column| column.name).collect();
            let mut once = names.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), names.len(), "{}", table.name);
            let keys = table.key.split_whitespace().count();
            assert!(keys > 0 && table.key_places().len() == keys, "{}", table.name);
            let texts: Vec<&str> = table.texts.split_whitespace().collect();
            assert!(table.long.split_whitespace().all(|long| texts.contains(&long)), "{}", table.name);
        }
    }
}
