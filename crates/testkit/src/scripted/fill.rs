//! Puts a process's own values into a line in place of `{{name}}`.

use serde_json::{Map, Value};

/// What a placeholder stands for.
#[derive(Debug, PartialEq)]
pub(super) enum Filled {
    /// This value; inside a longer text, its text.
    With(Value),
    /// Nothing: the member that holds it is left out.
    Absent,
    /// Not a placeholder: it stays as it is.
    Unknown,
}

/// Returns `template` with every placeholder replaced by what `lookup` says of its name.
pub(super) fn fill(template: &Value, lookup: &mut dyn FnMut(&str) -> Filled) -> Value {
    fill_value(template, lookup).unwrap_or_default()
}

/// Returns `template` with every placeholder replaced; an absent one becomes the empty text.
pub(super) fn fill_text(template: &str, lookup: &mut dyn FnMut(&str) -> Filled) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, name, after)) = placeholder(rest) {
        filled.push_str(before);
        match lookup(name) {
            Filled::With(Value::String(text)) => filled.push_str(&text),
            Filled::With(value) => filled.push_str(&value.to_string()),
            Filled::Absent => {}
            Filled::Unknown => filled.push_str(&rest[before.len()..rest.len() - after.len()]),
        }
        rest = after;
    }
    filled.push_str(rest);
    filled
}

fn fill_value(template: &Value, lookup: &mut dyn FnMut(&str) -> Filled) -> Option<Value> {
    match template {
        Value::String(text) => {
            if let Some(("", name, "")) = placeholder(text) {
                match lookup(name) {
                    Filled::With(value) => return Some(value),
                    Filled::Absent => return None,
                    Filled::Unknown => {}
                }
            }
            Some(Value::String(fill_text(text, lookup)))
        }
        Value::Array(items) => Some(items.iter().filter_map(|item| fill_value(item, lookup)).collect()),
        Value::Object(members) => {
            let filled =
                members.iter().filter_map(|(key, value)| Some((key.clone(), fill_value(value, lookup)?)));
            Some(Value::Object(filled.collect::<Map<_, _>>()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(template.clone()),
    }
}

/// Cuts a text around its first placeholder: before it, its name, after it.
fn placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.find("{{")?;
    let end = start + text[start..].find("}}")?;
    Some((&text[..start], &text[start + 2..end], &text[end + 2..]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn placeholders_are_replaced_and_absent_members_left_out() {
        let template = json!({"id": "{{session}}", "path": "{{output:b1}}. Done {{odd}}", "gone": "{{message}}",
                              "list": "{{live}}", "n": 1, "deep": [{"x": "{{session}}"}]});
        let filled = fill(&template, &mut |name| match name {
            "session" => Filled::With(json!("s1")),
            "output:b1" => Filled::With(json!("/t/b1.output")),
            "live" => Filled::With(json!([])),
            "message" => Filled::Absent,
            _ => Filled::Unknown,
        });
        assert_eq!(
            filled,
            json!({"id": "s1", "path": "/t/b1.output. Done {{odd}}", "list": [], "n": 1, "deep": [{"x": "s1"}]})
        );
    }
}
