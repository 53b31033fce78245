//! The fields of a cron pattern: what each may hold, names as numbers, and what is wrong in which of them.

struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    /// Three-letter names, from `least` on.
    names: &'static [&'static str],
}

const SECOND: Field = Field { name: "second", least: 0, most: 59, names: &[] };
const FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, most: 59, names: &[] },
    Field { name: "hour", least: 0, most: 23, names: &[] },
    Field { name: "day of month", least: 1, most: 31, names: &[] },
    Field {
        name: "month",
        least: 1,
        most: 12,
        names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
    },
    // 7 is Sunday once more.
    Field { name: "day of week", least: 0, most: 7, names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"] },
];

const MACROS: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// The pattern with all six fields in numbers; else what is wrong with it, as the end of a sentence that names it.
pub(super) fn in_numbers(cron: &str) -> Result<String, String> {
    let cron = cron.trim();
    if cron.starts_with('@') {
        let named = MACROS.iter().find(|(name, _)| name.eq_ignore_ascii_case(cron));
        let known = || MACROS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        return named
            .map(|(_, fields)| format!("0 {fields}"))
            .ok_or_else(|| format!("is none of the known names: {}", known()));
    }
    let given: Vec<&str> = cron.split_ascii_whitespace().collect();
    let fields: Vec<&Field> = match given.len() {
        5 => FIELDS.iter().collect(),
        6 => std::iter::once(&SECOND).chain(&FIELDS).collect(),
        count => {
            return Err(format!(
                "has {count} field{}; write 5 (minute, hour, day of month, month, day of week), or 6 with seconds first",
                if count == 1 { "" } else { "s" }
            ));
        }
    };
    let mut numbers: Vec<String> = Vec::with_capacity(6);
    if given.len() == 5 {
        numbers.push("0".to_owned());
    }
    for (field, text) in fields.into_iter().zip(given) {
        numbers.push(field.in_numbers(text)?);
    }
    Ok(numbers.join(" "))
}

impl Field {
    fn in_numbers(&self, text: &str) -> Result<String, String> {
        let items = text.split(',').map(|item| self.item(item)).collect::<Result<Vec<_>, _>>()?;
        Ok(items.join(","))
    }

    /// `*`, a value, a range, each with or without a step.
    fn item(&self, item: &str) -> Result<String, String> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (item, None),
        };
        let range = match range.split_once('-') {
            _ if range == "*" => "*".to_owned(),
            Some((first, last)) => {
                let (from, to) = (self.value(first, item)?, self.value(last, item)?);
                // A week may be written to its end: `FRI-SUN`.
                let to = if to == 0 && self.names.len() == 7 && from > 0 { 7 } else { to };
                if from > to {
                    return Err(self.wrong(item, "has a range that goes backwards"));
                }
                format!("{from}-{to}")
            }
            None => self.value(range, item)?.to_string(),
        };
        let Some(step) = step else { return Ok(range) };
        match step.parse::<u32>() {
            Ok(number @ 1..) if number <= self.most && step.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(format!("{range}/{number}"))
            }
            _ => Err(self.wrong(item, "has a step that is no number from 1 on")),
        }
    }

    fn value(&self, text: &str, item: &str) -> Result<u32, String> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let number = match named.and_then(|place| u32::try_from(place).ok()) {
            Some(place) => Some(self.least + place),
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
            None => None,
        };
        let number = number.filter(|number| (self.least..=self.most).contains(number));
        number.ok_or_else(|| self.wrong(item, "is not understood"))
    }

    fn wrong(&self, item: &str, what: &str) -> String {
        let item: String = item.chars().take(32).flat_map(char::escape_debug).collect();
        let names = match (self.names.first(), self.names.last()) {
            (Some(first), Some(last)) => format!(" (or {first} to {last})"),
            _ => String::new(),
        };
        format!(
            "{what} in its {name} field: `{item}`; right are `*`, numbers from {least} to {most}{names}, ranges `a-b`, steps \
             `*/n` or `a-b/n`, and lists of them with commas",
            name = self.name,
            least = self.least,
            most = self.most,
        )
    }
}
