//! Reads what is needed of a JSON text, in place.
//!
//! Agents' lines hold things that serde_json refuses as a whole: escaped lone surrogates, invalid UTF-8, NUL bytes,
//! a key given twice, another type than expected, thousands of nested brackets. Each of them would cost the whole
//! line, so this reader takes the opposite stand: it walks keys, hands out each value as the bytes it is written
//! with, and a value is looked at only when somebody asks. It never recurses, never allocates for what is skipped,
//! and compares equal with serde_json wherever that one accepts a text (tested below).

use std::borrow::Cow;

use super::Undecodable;

/// One value, as it is written in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Raw<'a>(&'a [u8]);

impl<'a> Raw<'a> {
    /// Returns the value that `text` starts with, if it is whole.
    pub(super) fn parse(text: &'a [u8]) -> Option<Self> {
        let from = skip_blank(text, 0);
        let end = skip_value(text, from)?;
        Some(Self(&text[from..end]))
    }

    pub(super) fn is_object(self) -> bool {
        self.0.first() == Some(&b'{')
    }

    pub(super) fn is_list(self) -> bool {
        self.0.first() == Some(&b'[')
    }

    /// Returns the value as it is written.
    pub(super) fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns a string's inside as it is written, escapes and all.
    pub(super) fn escaped(self) -> Option<&'a [u8]> {
        self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")
    }

    /// Returns a string's text; what is no Unicode becomes U+FFFD.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        let inside = self.escaped()?;
        if memchr::memchr(b'\\', inside).is_none() {
            return Some(String::from_utf8_lossy(inside));
        }
        let mut text = Vec::with_capacity(inside.len());
        unescape(inside, &mut text);
        Some(Cow::Owned(into_string(text)))
    }

    /// Returns a string's text, or None for an empty one.
    pub(super) fn filled(self) -> Option<String> {
        self.text().filter(|text| !text.is_empty()).map(Cow::into_owned)
    }

    /// Returns whether this is exactly the string `text`.
    pub(super) fn is(self, text: &str) -> bool {
        match self.escaped() {
            Some(inside) if inside == text.as_bytes() => true,
            Some(inside) if memchr::memchr(b'\\', inside).is_some() => self.text().as_deref() == Some(text),
            Some(_) | None => false,
        }
    }

    pub(super) fn is_true(self) -> bool {
        self.0 == b"true"
    }

    /// Returns a number that is finite.
    pub(super) fn float(self) -> Option<f64> {
        let number: f64 = self.number()?.parse().ok()?;
        number.is_finite().then_some(number)
    }

    /// Returns a number as an unsigned one: without its fraction, at least zero, at most `u64::MAX`.
    pub(super) fn unsigned(self) -> Option<u64> {
        let number = self.number()?;
        // A cast from a float saturates, which is what is wanted here.
        number.parse().ok().or_else(|| number.parse::<f64>().ok().map(|number| number as u64))
    }

    fn number(self) -> Option<&'a str> {
        let starts = matches!(self.0.first(), Some(b'-' | b'0'..=b'9'));
        if starts { std::str::from_utf8(self.0).ok() } else { None }
    }

    /// Returns the fields of an object; none for anything else.
    pub(super) fn fields(self) -> Fields<'a> {
        let inside = if self.is_object() { &self.0[1..] } else { b"}" };
        Fields { text: inside, at: 0, state: State::Open }
    }

    /// Returns an object's field; of several with one name the last counts, as in `JSON.parse`.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        let mut found = None;
        for (key, value) in self.fields() {
            if *key == *name.as_bytes() {
                found = Some(value);
            }
        }
        found
    }

    /// Returns the elements of a list; none for anything else.
    pub(super) fn items(self) -> Items<'a> {
        Items { text: if self.is_list() { &self.0[1..] } else { b"]" }, at: 0 }
    }
}

/// The fields of one object, gathered.
#[derive(Debug)]
pub(super) struct Object<'a>(Vec<(Cow<'a, [u8]>, Raw<'a>)>);

impl<'a> Object<'a> {
    /// Reads the object that a line consists of; None for a line without anything in it.
    pub(super) fn of_line(line: &'a [u8]) -> Result<Option<Self>, Undecodable> {
        let Some(mut fields) = Fields::of_line(line)? else { return Ok(None) };
        // More than any measured line but `result` and `init` has.
        let mut gathered = Vec::with_capacity(24);
        gathered.extend(fields.by_ref());
        fields.close()?;
        Ok(Some(Self(gathered)))
    }

    /// Returns a field; of several with one name the last counts, as in `JSON.parse`.
    pub(super) fn get(&self, name: &str) -> Option<Raw<'a>> {
        self.0.iter().rev().find(|(key, _)| **key == *name.as_bytes()).map(|(_, value)| *value)
    }

    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name)?.text()
    }

    /// Returns a string that is not empty.
    pub(super) fn filled(&self, name: &str) -> Option<String> {
        self.get(name)?.filled()
    }

    pub(super) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(Raw::is_true)
    }
}

/// The elements of a list.
#[derive(Debug)]
pub(super) struct Items<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = Raw<'a>;

    fn next(&mut self) -> Option<Raw<'a>> {
        let mut from = skip_blank(self.text, self.at);
        if self.text.get(from) == Some(&b',') {
            from = skip_blank(self.text, from + 1);
        }
        let end = skip_value(self.text, from)?;
        self.at = end;
        Some(Raw(&self.text[from..end]))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Closed,
    Broken(&'static str),
}

/// The fields of an object, in their order.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    text: &'a [u8],
    at: usize,
    state: State,
}

impl<'a> Fields<'a> {
    /// Opens the object that a line consists of; None for a line without anything in it.
    ///
    /// A byte order mark, blanks and NUL bytes around it are passed over: a file system can leave a run of NUL bytes
    /// where a machine lost power.
    pub(super) fn of_line(line: &'a [u8]) -> Result<Option<Self>, Undecodable> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let from = line.iter().position(|byte| !is_blank(*byte) && *byte != 0);
        match from.map(|from| (line[from], &line[from + 1..])) {
            None => Ok(None),
            Some((b'{', text)) => Ok(Some(Self { text, at: 0, state: State::Open })),
            Some(_) => Err(Undecodable { reason: "it does not begin with a brace" }),
        }
    }

    /// Tells whether the object was whole; to be asked once all fields were taken.
    pub(super) fn close(self) -> Result<(), Undecodable> {
        match self.state {
            State::Closed => Ok(()),
            State::Open => Err(Undecodable { reason: "it was not read to its end" }),
            State::Broken(reason) => Err(Undecodable { reason }),
        }
    }

    fn broken(&mut self) -> Option<<Self as Iterator>::Item> {
        let cut = skip_blank(self.text, self.at) >= self.text.len();
        self.state = State::Broken(if cut { "it is cut off" } else { "its syntax is broken" });
        None
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Cow<'a, [u8]>, Raw<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.state != State::Open {
            return None;
        }
        self.at = skip_blank(self.text, self.at);
        if self.text.get(self.at) == Some(&b',') {
            self.at = skip_blank(self.text, self.at + 1);
        }
        match self.text.get(self.at) {
            Some(b'}') => {
                self.state = State::Closed;
                return None;
            }
            Some(b'"') => {}
            Some(_) | None => return self.broken(),
        }
        let key = self.at + 1;
        let Some(key_end) = skip_string(self.text, key) else {
            self.at = self.text.len();
            return self.broken();
        };
        self.at = skip_blank(self.text, key_end);
        if self.text.get(self.at) != Some(&b':') {
            return self.broken();
        }
        self.at = skip_blank(self.text, self.at + 1);
        let from = self.at;
        let Some(end) = skip_value(self.text, from) else {
            if !matches!(self.text.get(from), Some(b',' | b'}' | b']' | b':')) {
                self.at = self.text.len();
            }
            return self.broken();
        };
        self.at = end;
        let name = &self.text[key..key_end - 1];
        let name = if memchr::memchr(b'\\', name).is_none() {
            Cow::Borrowed(name)
        } else {
            let mut plain = Vec::new();
            unescape(name, &mut plain);
            Cow::Owned(plain)
        };
        Some((name, Raw(&self.text[from..end])))
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn skip_blank(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(|byte| is_blank(*byte)) {
        at += 1;
    }
    at
}

/// Returns where the value that starts at `at` ends; None if none starts there or it is cut off.
fn skip_value(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' => skip_string(text, at + 1),
        b'{' | b'[' => skip_nested(text, at + 1),
        b'}' | b']' | b',' | b':' => None,
        _ => {
            let rest = &text[at..];
            let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || is_blank(*byte);
            Some(at + rest.iter().position(ends).unwrap_or(rest.len()))
        }
    }
}

/// Returns the place after the bracket that closes the one before `at`; brackets are counted, not matched by kind.
fn skip_nested(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 1usize;
    loop {
        match text.get(at)? {
            b'"' => {
                at = skip_string(text, at + 1)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Returns the place after the quotation mark that ends the string whose inside starts at `at`.
fn skip_string(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// Appends the text of an escaped string to `text`, as valid UTF-8.
///
/// A surrogate without its other half and bytes that are no UTF-8 become U+FFFD; an unknown escape stands for itself.
pub(super) fn unescape(mut escaped: &[u8], text: &mut Vec<u8>) {
    while let Some(backslash) = memchr::memchr(b'\\', escaped) {
        append_lossy(&escaped[..backslash], text);
        let after = &escaped[backslash + 1..];
        let (plain, taken) = match after.first() {
            Some(b'n') => ('\n', 1),
            Some(b'r') => ('\r', 1),
            Some(b't') => ('\t', 1),
            Some(b'b') => ('\u{8}', 1),
            Some(b'f') => ('\u{c}', 1),
            Some(b'u') => unicode_escape(after),
            Some(other @ 0..=0x7f) => (char::from(*other), 1),
            // The rest of a character of several bytes follows as it is.
            Some(_) | None => ('\\', 0),
        };
        text.extend_from_slice(plain.encode_utf8(&mut [0; 4]).as_bytes());
        escaped = &after[taken..];
    }
    append_lossy(escaped, text);
}

/// Returns the character of an escape that starts with `u`, and how many bytes it takes.
fn unicode_escape(after: &[u8]) -> (char, usize) {
    let Some(first) = hex(after.get(1..5)) else { return ('u', 1) };
    let low = match after.get(5..7) {
        Some(b"\\u") if (0xd800..0xdc00).contains(&first) => hex(after.get(7..11)),
        Some(_) | None => None,
    };
    match low.filter(|low| (0xdc00..0xe000).contains(low)) {
        Some(low) => {
            let joined = 0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00);
            (char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER), 11)
        }
        None => (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 5),
    }
}

fn hex(digits: Option<&[u8]>) -> Option<u32> {
    digits?.iter().try_fold(0, |sum, digit| Some(sum << 4 | char::from(*digit).to_digit(16)?))
}

fn append_lossy(bytes: &[u8], text: &mut Vec<u8>) {
    text.extend_from_slice(String::from_utf8_lossy(bytes).as_bytes());
}

fn into_string(text: Vec<u8>) -> String {
    // Always valid (see `unescape`); the other arm only spares an `expect`.
    String::from_utf8(text).unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Reads a whole text the way the decoders read parts of it.
    fn value(raw: Raw<'_>) -> Value {
        if raw.is_object() {
            let pairs =
                raw.fields().map(|(key, inner)| (String::from_utf8_lossy(&key).into_owned(), value(inner)));
            return Value::Object(pairs.collect());
        }
        if raw.is_list() {
            return Value::Array(raw.items().map(value).collect());
        }
        if let Some(text) = raw.text() {
            return Value::String(text.into_owned());
        }
        match raw.0 {
            b"true" => Value::Bool(true),
            b"false" => Value::Bool(false),
            b"null" => Value::Null,
            _ => serde_json::from_slice(raw.0).unwrap(),
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::String),
            "[\"\\\\{}\\[\\],: \n\u{1F600}a]{0,12}".prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn reads_what_serde_json_reads(expected in any_value(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_vec_pretty(&expected) } else { serde_json::to_vec(&expected) }.unwrap();
            prop_assert_eq!(value(Raw::parse(&text).unwrap()), expected);
        }

        #[test]
        fn escapes_read_as_serde_json_reads_them(text in "(\\\\[\"\\\\/bfnrt]|\\\\u[0-9a-fA-F]{4}|[a-z\u{e9}]){0,12}") {
            let quoted = format!("\"{text}\"");
            if let Ok(expected) = serde_json::from_str::<String>(&quoted) {
                let read = Raw::parse(quoted.as_bytes()).unwrap().text().unwrap();
                prop_assert_eq!(read.as_ref(), expected.as_str());
            }
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(b"{}[]\",:\\u0d8tn ".to_vec())], 0..80)
        ) {
            if let Ok(Some(mut fields)) = Fields::of_line(&bytes) {
                for (_, raw) in fields.by_ref() {
                    let inner = raw.fields().count() + raw.items().count();
                    prop_assert!(inner <= bytes.len());
                    drop((raw.text(), raw.unsigned(), raw.float(), raw.field("a")));
                }
                let whole = fields.close().is_ok();
                prop_assert!(whole || serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_err());
            }
        }
    }

    #[test]
    fn a_lone_surrogate_and_bytes_that_are_no_text_become_the_replacement_character() {
        for (written, read) in [
            (&b"\"a\\ud800b\""[..], "a\u{fffd}b"),
            (b"\"\\udc00\"", "\u{fffd}"),
            (b"\"\\ud83d\\ude00\"", "\u{1F600}"),
            (b"\"\\ud83d\\u0041\"", "\u{fffd}A"),
            (b"\"\\ud83d\"", "\u{fffd}"),
            (b"\"a\xffb\"", "a\u{fffd}b"),
            (b"\"\\n\xe2\x80\"", "\n\u{fffd}"),
            (b"\"a\0b\"", "a\0b"),
            (b"\"\\x\"", "x"),
            (b"\"\\u00zz\"", "u00zz"),
        ] {
            assert_eq!(Raw::parse(written).unwrap().text().unwrap(), read, "{written:?}");
        }
    }

    #[test]
    fn numbers_of_any_size_are_read_as_far_as_they_go() {
        for (written, unsigned, float) in [
            ("7", Some(7), Some(7.0)),
            ("-3", Some(0), Some(-3.0)),
            ("2.9", Some(2), Some(2.9)),
            ("1e400", Some(u64::MAX), None),
            ("99999999999999999999999", Some(u64::MAX), Some(1e23)),
            ("\"7\"", None, None),
            ("nan", None, None),
        ] {
            let raw = Raw::parse(written.as_bytes()).unwrap();
            assert_eq!((raw.unsigned(), raw.float()), (unsigned, float), "{written}");
        }
    }

    #[test]
    fn a_hundred_thousand_brackets_are_skipped_without_a_deep_stack() {
        let deep =
            [b"{\"a\":".as_slice(), &b"[".repeat(100_000), &b"]".repeat(100_000), b",\"b\":1}"].concat();
        let mut fields = Fields::of_line(&deep).unwrap().unwrap();
        assert_eq!(fields.by_ref().count(), 2);
        assert_eq!(fields.close(), Ok(()));
    }
}
