use super::*;
use proptest::prelude::*;

fn calendar(cron: &str, zone: &str) -> Calendar {
    Calendar::parse(cron, zone).unwrap()
}

fn ms(instant: &str) -> i64 {
    instant.parse::<Timestamp>().unwrap().as_millisecond()
}

/// The first instants after one, in UTC.
fn first(cron: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let calendar = calendar(cron, zone);
    let mut at_ms = ms(after);
    let mut instants = Vec::new();
    for _ in 0..count {
        at_ms = calendar.next_after(at_ms).unwrap();
        instants.push(Timestamp::from_millisecond(at_ms).unwrap().to_string());
    }
    instants
}

#[test]
fn patterns_of_five_and_six_fields_names_and_macros_are_read() {
    let from = "2026-11-30T09:00:00.500Z";
    for (cron, expected) in [
        ("30 2 * * *", "2026-12-01T02:30:00Z"),
        ("*/15 * * * *", "2026-11-30T09:15:00Z"),
        ("15 30 9 * * *", "2026-11-30T09:30:15Z"),
        ("* * * * * *", "2026-11-30T09:00:01Z"),
        ("0 6 * * MON-fri", "2026-12-01T06:00:00Z"),
        ("0 6 * * FRI-SUN", "2026-12-04T06:00:00Z"),
        ("0 6 * * 7", "2026-12-06T06:00:00Z"),
        ("0 0 29 feb *", "2028-02-29T00:00:00Z"),
        ("0 0 31 * *", "2026-12-31T00:00:00Z"),
        ("0 0 1,15 JAN,jul *", "2027-01-01T00:00:00Z"),
        ("5/20 9 * * *", "2026-11-30T09:05:00Z"),
        // As cron has it: with both days given, either will do.
        ("0 12 13 * FRI", "2026-12-04T12:00:00Z"),
        (" @daily ", "2026-12-01T00:00:00Z"),
        ("@Weekly", "2026-12-06T00:00:00Z"),
        ("@hourly", "2026-11-30T10:00:00Z"),
        ("@yearly", "2027-01-01T00:00:00Z"),
    ] {
        assert_eq!(first(cron, "UTC", from, 1), [expected], "{cron}");
    }
}

#[test]
fn what_is_wrong_is_said_by_its_field() {
    for (cron, said) in [
        ("", "has 0 fields; write 5"),
        ("0", "has 1 field; write 5"),
        ("0 0 * * * * 2027", "has 7 fields"),
        ("60 * * * *", "is not understood in its minute field: `60`; right are `*`, numbers from 0 to 59"),
        ("0 24 * * *", "in its hour field: `24`"),
        ("0 0 0 * *", "in its day of month field: `0`"),
        ("0 0 * 13 *", "in its month field: `13`; right are `*`, numbers from 1 to 12 (or JAN to DEC)"),
        ("0 0 * * MONDAY", "in its day of week field: `MONDAY`; right are `*`, numbers from 0 to 7 (or SUN to SAT)"),
        ("61 0 0 * * *", "in its second field: `61`"),
        ("0 5-2 * * *", "has a range that goes backwards in its hour field: `5-2`"),
        ("*/0 * * * *", "has a step that is no number from 1 on in its minute field: `*/0`"),
        ("*/x * * * *", "has a step"),
        ("1,,2 * * * *", "in its minute field: ``"),
        ("0 0 L * *", "in its day of month field: `L`"),
        ("0 0 ? * *", "in its day of month field: `?`"),
        ("0 0 30 FEB *", "names a day that no month of it has"),
        ("@often", "is none of the known names: @hourly, @daily"),
        ("+1 * * * *", "in its minute field: `+1`"),
    ] {
        let Err(Malformed::Cron(problem)) = Calendar::parse(cron, "UTC") else { panic!("{cron} was taken") };
        assert!(problem.contains(said), "{cron}: {problem}");
    }
    for zone in ["", "Mars/Olympus", "+02:00", "CEST"] {
        assert!(matches!(Calendar::parse("@daily", zone), Err(Malformed::Zone(_))), "{zone}");
    }
    assert_eq!(calendar("@daily", "europe/BERLIN").zone(), "Europe/Berlin");
    assert!(Calendar::parse(&"1,".repeat(600), "UTC").unwrap_err().to_string().contains("at most 1024"));
}

#[test]
fn a_skipped_time_fires_at_the_first_instant_after_the_gap_and_a_repeated_one_once() {
    // New York, 8 March 2026, 02:00 EST is 03:00 EDT; 1 November 2026, 02:00 EDT is 01:00 EST.
    let new_york = "America/New_York";
    assert_eq!(
        first("30 2 * * *", new_york, "2026-03-07T12:00:00Z", 2),
        ["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]
    );
    assert_eq!(
        first("30 1 * * *", new_york, "2026-10-31T12:00:00Z", 2),
        ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]
    );
    // Several skipped times and the first one after them are one instant.
    assert_eq!(
        first("*/20 * * * *", new_york, "2026-03-08T06:30:00Z", 3),
        ["2026-03-08T06:40:00Z", "2026-03-08T07:00:00Z", "2026-03-08T07:20:00Z"]
    );
    // From the middle of the second showing.
    assert_eq!(first("45 1 * * *", new_york, "2026-11-01T06:10:00Z", 1), ["2026-11-02T06:45:00Z"]);
    assert_eq!(first("*/20 * * * *", new_york, "2026-11-01T05:40:00Z", 1), ["2026-11-01T07:00:00Z"]);
}

#[test]
fn half_an_hour_and_a_whole_day_are_skipped_as_well() {
    // Lord Howe, 4 October 2026: 02:00 +10:30 is 02:30 +11; 5 April 2026: 02:00 +11 is 01:30 +10:30.
    assert_eq!(
        first("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", 2),
        ["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"]
    );
    assert_eq!(
        first("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", 2),
        ["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"]
    );
    // Samoa had no 30 December 2011.
    assert_eq!(
        first("0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", 3),
        ["2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"]
    );
}

#[test]
fn the_last_of_many_is_found_without_counting_them() {
    let every_second = calendar("* * * * * *", "UTC");
    let (from_ms, to_ms) = (ms("2020-01-01T00:00:00Z"), ms("2026-01-01T00:00:00.700Z"));
    assert_eq!(every_second.last_within(from_ms, to_ms), Some(ms("2026-01-01T00:00:00Z")));
    let monthly = calendar("@monthly", "UTC");
    assert_eq!(monthly.last_within(from_ms, to_ms - 86_400_000), Some(ms("2025-12-01T00:00:00Z")));
    assert_eq!(monthly.last_within(from_ms, from_ms + 1_000), None);
    assert_eq!(monthly.last_within(from_ms - 1, from_ms), Some(from_ms));
}

#[test]
fn it_is_said_in_words() {
    let said: Vec<String> =
        ["30 2 * * *", "*/15 * * * *", "0 6 * * MON-FRI", "15 30 9 * * *", "0 0 1,15 JAN *", "@weekly"]
            .iter()
            .map(|cron| calendar(cron, "Europe/Berlin").in_words())
            .collect();
    insta::assert_snapshot!(said.join("\n"), @r"
    At 02:30, Europe/Berlin
    Every 15 minutes, Europe/Berlin
    At 06:00, on Monday, Tuesday, Wednesday, Thursday, and Friday, Europe/Berlin
    At 09:30:15, Europe/Berlin
    At 00:00, on day 1 and 15, in January, Europe/Berlin
    At 00:00, on Sunday, Europe/Berlin
    ");
}

const ZONES: [&str; 8] = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "America/St_Johns",
    "Africa/Casablanca",
    "Asia/Kathmandu",
];

fn field(least: u32, most: u32) -> impl Strategy<Value = String> {
    let value = least..=most;
    prop_oneof![
        3 => Just("*".to_owned()),
        2 => value.clone().prop_map(|value| value.to_string()),
        1 => (value.clone(), value.clone()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (1..=most).prop_map(|step| format!("*/{step}")),
        1 => (value.clone(), value).prop_map(|(a, b)| format!("{a},{b}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 96, ..ProptestConfig::default() })]

    /// From wherever one begins: each instant is later than the one before, clocks show a time there that the pattern
    /// matches, or have just been set forward over one.
    #[test]
    fn instants_grow_and_show_what_the_pattern_says(
        second in field(0, 59), minute in field(0, 59), hour in field(0, 23), day in field(1, 28), month in field(1, 12),
        weekday in field(0, 7), zone in prop::sample::select(&ZONES), from_s in 1_300_000_000_i64..1_900_000_000,
        to_change in any::<bool>(),
    ) {
        let calendar = calendar(&format!("{second} {minute} {hour} {day} {month} {weekday}"), zone);
        let mut at_ms = from_s * 1_000;
        // Clocks are changed twice a year: half of the walks begin just before.
        if to_change && let Some(change) = calendar.zone.following(Timestamp::from_second(from_s).unwrap()).next() {
            at_ms = change.timestamp().as_millisecond() - 4_000_000;
        }
        for _ in 0..40 {
            let next_ms = calendar.next_after(at_ms).unwrap();
            prop_assert!(next_ms > at_ms);
            prop_assert_eq!(calendar.next_after(next_ms - 1), Some(next_ms));
            let at = Timestamp::from_millisecond(next_ms).unwrap();
            let civil_s = |at: Timestamp| TimeZone::UTC.to_timestamp(calendar.zone.to_datetime(at)).unwrap().as_second();
            let shown = DateTime::<Utc>::from_timestamp(civil_s(at), 0).unwrap();
            if !calendar.pattern.is_time_matching(&shown).unwrap() {
                let before = Timestamp::from_millisecond(next_ms - 1_000).unwrap();
                let skipped = civil_s(before) + 1..civil_s(at);
                let inside = calendar.pattern.find_next_occurrence(
                    &DateTime::<Utc>::from_timestamp(skipped.start, 0).unwrap(), true).unwrap();
                prop_assert!(skipped.contains(&inside.timestamp()), "{} shows {}", at, shown);
            }
            at_ms = next_ms;
        }
    }
}
