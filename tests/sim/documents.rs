//! `docs/SIMULATOR.md` and the built-in scenarios keep their word.

use super::{ask, client, question, settled, sim, sim_at};
use reprieve::clock::Clock;
use reprieve::sim::{Log, Scenario, Sim, SimOptions, Stats};
use serde_json::{Value, json};

const MANUAL: &str = include_str!("../../docs/SIMULATOR.md");

/// The fenced blocks that begin with this line.
fn blocks(fence: &str) -> Vec<&'static str> {
    let opening = format!("```{fence}\n");
    let after = MANUAL.split(opening.as_str()).skip(1);
    after.map(|rest| rest.split_once("\n```").unwrap().0).collect()
}

fn document(fence: &str) -> Value {
    serde_json::from_str(blocks(fence)[0]).unwrap()
}

/// As much of JSON Schema as the manual uses; what is wrong, by its place.
fn violations(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    let fits = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other}: not known to this checker"),
    };
    let fitting = match &schema["type"] {
        Value::Null => true,
        Value::Array(names) => names.iter().any(|name| fits(name.as_str().unwrap())),
        name => fits(name.as_str().unwrap()),
    };
    let least = schema["minimum"].as_i64().is_none_or(|least| value.as_i64().is_some_and(|number| number >= least));
    let constant = schema.get("const").is_none_or(|constant| constant == value);
    let listed = schema["enum"].as_array().is_none_or(|values| values.contains(value));
    if !(fitting && least && constant && listed) {
        found.push(format!("{at}: {value}"));
    }
    if let Some(members) = value.as_object() {
        for required in schema["required"].as_array().into_iter().flatten() {
            if !members.contains_key(required.as_str().unwrap()) {
                found.push(format!("{at}: lacks {required}"));
            }
        }
        for (name, member) in members {
            match schema["properties"].get(name) {
                Some(schema) => found.extend(violations(schema, member, &format!("{at}/{name}"))),
                None => found.push(format!("{at}: has {name}")),
            }
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(violations(&schema["items"], item, &format!("{at}/{index}")));
    }
    found
}

#[test]
fn the_checker_checks() {
    let schema = document("json schema=log");
    let mut log = document("json example=log");
    log["entries"][0]["outcome"] = "lost".into();
    log["entries"][0]["by"] = 1.into();
    log["more"] = 1.into();
    log.as_object_mut().unwrap().remove("lost");
    assert_eq!(violations(&schema, &log, "").len(), 4);
}

#[tokio::test]
async fn the_endpoints_and_the_examples_keep_the_schema() {
    let text = "[[limits]]\nname = \"l\"\ncount = \"requests\"\nlimit = 1\nper = \"1h\"\n[[rules]]\nname = \"r\"\n\
                models = [\"dropped\"]\ndrop = {}";
    let sim = sim(text).await;
    for model in ["m", "m"] {
        ask(&sim, model).await.bytes().await.unwrap();
    }
    let url = format!("{}/v1/chat/completions", sim.url());
    client().post(url).json(&question("dropped", false)).send().await.unwrap_err();
    settled(&sim).await;
    let get = async |path: &str| -> Value {
        client().get(format!("{}{path}", sim.url())).send().await.unwrap().json().await.unwrap()
    };
    let (stats, log) = (get("/_sim/stats").await, get("/_sim/log?since=0&limit=2").await);
    for (document, example, schema) in [
        (&stats, document("json example=stats"), document("json schema=stats")),
        (&log, document("json example=log"), document("json schema=log")),
    ] {
        assert_eq!(violations(&schema, &example, ""), [""; 0]);
        assert_eq!(violations(&schema, document, ""), [""; 0]);
    }
    let stats: Stats = serde_json::from_value(stats).unwrap();
    assert_eq!((stats.totals.completed, stats.totals.refused, stats.totals.dropped), (1, 1, 1));
    assert_eq!(stats.scopes.len(), 2);
    let log: Log = serde_json::from_value(log).unwrap();
    assert_eq!((log.entries.len(), log.next_since, log.entries[1].by.as_deref()), (2, 2, Some("l")));
    assert_eq!(get("/_sim/log?since=2").await["entries"][0]["status"], Value::Null);

    client().post(format!("{}/_sim/reset", sim.url())).send().await.unwrap();
    assert_eq!(sim.stats().totals.received, 0);
    let astray = client().get(format!("{}/_sim/log?since=x", sim.url())).send().await.unwrap();
    assert_eq!(astray.status(), 400);
    sim.shutdown().await;
}

#[test]
fn the_scenarios_in_the_manual_are_sound() {
    let scenarios = blocks("toml");
    assert_eq!(scenarios.len(), 2);
    for text in scenarios {
        Scenario::parse(text, "docs/SIMULATOR.md").unwrap();
    }
}

#[test]
fn the_manual_names_every_kind_and_convention() {
    // An unknown name is answered with all that there are.
    let listed = |refuse: &str| {
        let text = format!("name = \"x\"\n[[rules]]\nname = \"r\"\nrefuse = {{ {refuse} }}");
        let error = Scenario::parse(&text, "-").unwrap_err().to_string();
        let names: Vec<_> = error.split('`').skip(3).step_by(2).map(str::to_owned).collect();
        assert!(names.len() > 10, "{error}");
        names
    };
    for name in listed("kind = \"?\"") {
        assert!(MANUAL.contains(&format!("`{name}`")), "{name}");
    }
    for name in listed("kind = \"bad_key\", reset = [\"?\"]") {
        let short = name.strip_prefix("x-ratelimit-reset").filter(|rest| !rest.is_empty()).unwrap_or(&name);
        assert!(MANUAL.contains(&format!("`{short}`")), "{name}");
    }
}

#[tokio::test]
async fn metered_takes_six_hundred_a_minute() {
    let clock = Clock::manual(1_000_000);
    let scenario = Scenario::builtin("metered").unwrap();
    let sim = Sim::start(scenario, SimOptions { clock: clock.clone(), ..SimOptions::default() }).await.unwrap();
    for second in 0..6_u32 {
        clock.set_ms(1_000_000 + i64::from(second) * 1_000);
        let expected = u64::from(second + 1) * 30;
        let all = futures::future::join_all((0..30).map(|_| ask(&sim, "m")));
        super::advancing(&clock, || sim.stats().totals.received == expected, all).await;
    }
    let totals = settled(&sim).await;
    assert_eq!((totals.completed, totals.refused), (60, 120), "the burst of ten, then ten a second");
    sim.shutdown().await;
}

/// A request of the tour: dialect's path, key, model.
async fn tour(sim: &Sim, clock: &Clock, key: &str, model: &str) -> (u16, String) {
    let path = match model {
        "demo-flash" => "/v1beta/models/demo-flash:streamGenerateContent?alt=sse",
        "demo-tokens" | "demo-frames" => "/v1/messages",
        _ => "/v1/chat/completions",
    };
    let mut body = question(model, true);
    body["contents"] = json!([{"role": "user", "parts": [{"text": "What is at the quay?"}]}]);
    let sent = async {
        let response = super::post(sim, path, key, &body).await.unwrap();
        let status = response.status().as_u16();
        (status, response.text().await.unwrap_or_else(|_| "(broken off)".to_owned()))
    };
    super::advancing(clock, || true, sent).await
}

#[tokio::test]
async fn the_tour_meets_what_its_table_promises() {
    let clock = Clock::manual(1_790_000_000_000);
    let text = include_str!("../../config/scenarios/demo.toml");
    let sim = sim_at(&text.replace("name = \"demo\"", ""), clock.clone()).await;
    let several = async |times: usize, key: &str, model: &str| {
        let mut seen = Vec::new();
        for _ in 0..times {
            seen.push(tour(&sim, &clock, key, model).await);
        }
        seen
    };
    let statuses = |seen: &[(u16, String)]| seen.iter().map(|(status, _)| *status).collect::<Vec<_>>();

    let plan = several(5, "sim-plan", "demo-plan").await;
    assert_eq!(statuses(&plan), [200, 200, 200, 200, 429]);
    let spent: Value = serde_json::from_str(&plan[4].1).unwrap();
    let named_s = spent["error"]["resets_in_seconds"].as_i64().unwrap();
    assert!(spent["error"]["type"] == "usage_limit_reached" && (8..=14).contains(&named_s), "{spent}");

    let rate = several(4, "sim-openai", "demo-rate").await;
    assert_eq!(statuses(&rate), [200, 200, 200, 429]);
    assert!(rate[3].1.contains("rate_limit_exceeded"));
    let flash = several(4, "sim-gemini", "demo-flash").await;
    assert_eq!(statuses(&flash), [200, 200, 200, 429]);
    assert!(flash[3].1.contains("RetryInfo"));
    let tokens = several(8, "sim-anthropic", "demo-tokens").await;
    assert!(statuses(&tokens).contains(&429) && tokens[0].0 == 200, "{:?}", statuses(&tokens));

    let stream = several(3, "sim-openai", "demo-stream").await;
    assert_eq!(stream.iter().filter(|(_, text)| text == "(broken off)").count(), 2);
    let silent = several(2, "sim-openai", "demo-silent").await;
    assert_eq!(silent.iter().map(|(_, text)| text.contains("[DONE]")).collect::<Vec<_>>(), [false, true]);
    let short = several(3, "sim-openai", "demo-short").await;
    assert_eq!(short.iter().filter(|(_, text)| text.contains("\"finish_reason\":\"length\"")).count(), 2);
    let frames = several(3, "sim-anthropic", "demo-frames").await;
    assert_eq!(frames.iter().filter(|(_, text)| text.contains("overloaded_error")).count(), 2);
    assert_eq!(statuses(&several(1, "sim-openai", "demo-context").await), [400]);
    assert_eq!(statuses(&several(1, "sim-revoked", "demo-rate").await), [401]);

    let began_ms = clock.now_ms();
    assert_eq!(statuses(&several(1, "sim-openai", "demo-spell").await), [503]);
    clock.set_ms(began_ms + 2_900);
    assert_eq!(statuses(&several(1, "sim-openai", "demo-spell").await), [503]);
    clock.set_ms(began_ms + 3_200);
    assert_eq!(statuses(&several(1, "sim-openai", "demo-spell").await), [200]);
    sim.shutdown().await;
}
