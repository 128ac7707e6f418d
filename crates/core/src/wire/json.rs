//! Reads what is needed of a JSON text, in place.
//!
//! Agents' lines hold things that serde_json refuses as a whole: escaped lone surrogates, invalid UTF-8, NUL bytes,
//! a key given twice, another type than expected, thousands of nested brackets. Each of them would cost the whole
//! line, so this reader takes the opposite stand: it walks keys, hands out each value as the bytes it is written
//! with, and a value is looked at only when somebody asks. It never recurses, never allocates for what is skipped,
//! and compares equal with serde_json wherever that one accepts a text (tested below).

use std::borrow::Cow;

use super::{Undecodable, escape};

/// One value, as it is written in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Raw<'a>(&'a [u8]);

impl<'a> Raw<'a> {
    /// Returns the value that `text` starts with, if it is whole.
    pub(super) fn parse(text: &'a [u8]) -> Option<Self> {
        Cursor { text, at: 0 }.value().ok()
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
        self.escaped().map(escape::text)
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
        Fields(self.opened(b'{'))
    }

    /// Returns an object's field; of several with one name the last counts, as in `JSON.parse`.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        self.fields().filter(|(key, _)| **key == *name.as_bytes()).last().map(|(_, value)| value)
    }

    /// Returns the elements of a list; none for anything else.
    pub(super) fn items(self) -> Items<'a> {
        Items(self.opened(b'['))
    }

    fn opened(self, bracket: u8) -> Cursor<'a> {
        let mut cursor = Cursor { text: self.0, at: 0 };
        if !cursor.enter(bracket) {
            cursor.at = cursor.text.len();
        }
        cursor
    }
}

/// The name of a field.
pub(super) type Key<'a> = Cow<'a, [u8]>;

/// The fields of an object, in their order.
#[derive(Debug)]
pub(super) struct Fields<'a>(Cursor<'a>);

impl<'a> Iterator for Fields<'a> {
    type Item = (Key<'a>, Raw<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.key().ok()??, self.0.value().ok()?))
    }
}

/// The elements of a list.
#[derive(Debug)]
pub(super) struct Items<'a>(Cursor<'a>);

impl<'a> Iterator for Items<'a> {
    type Item = Raw<'a>;

    fn next(&mut self) -> Option<Raw<'a>> {
        if self.0.has_item().ok()? { self.0.value().ok() } else { None }
    }
}

/// A place in a text, for readers that walk into nested values rather than skip them first.
///
/// After an error it stands at the end of the text, where nothing follows.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Enters the object that a line consists of; None for a line without anything in it.
    ///
    /// A byte order mark, blanks and NUL bytes before it are passed over: a file system can leave a run of NUL bytes
    /// where a machine lost power. What follows the object is not looked at.
    pub(super) fn of_line(line: &'a [u8]) -> Result<Option<Self>, Undecodable> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        match line.iter().position(|byte| !is_blank(*byte) && *byte != 0) {
            None => Ok(None),
            Some(from) if line[from] == b'{' => Ok(Some(Self { text: line, at: from + 1 })),
            Some(_) => Err(Undecodable { reason: "it does not begin with a brace" }),
        }
    }

    /// Steps into the object or list that starts here, if one with this bracket does.
    pub(super) fn enter(&mut self, bracket: u8) -> bool {
        let enters = self.text.get(self.at) == Some(&bracket);
        self.at += usize::from(enters);
        enters
    }

    /// Steps to the value of the object's next field, or behind the object.
    pub(super) fn key(&mut self) -> Result<Option<Key<'a>>, Undecodable> {
        self.blank_and_comma();
        let from = self.at + 1;
        match self.text.get(self.at) {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b'"') => self.at = skip_string(self.text, from).ok_or_else(|| self.broken(CUT))?,
            Some(_) => return Err(self.broken(SYNTAX)),
            None => return Err(self.broken(CUT)),
        }
        let name = &self.text[from..self.at - 1];
        self.at = skip_blank(self.text, self.at);
        match self.text.get(self.at) {
            Some(b':') => self.at = skip_blank(self.text, self.at + 1),
            Some(_) => return Err(self.broken(SYNTAX)),
            None => return Err(self.broken(CUT)),
        }
        if !name.contains(&b'\\') {
            return Ok(Some(Cow::Borrowed(name)));
        }
        Ok(Some(Cow::Owned(escape::text(name).into_owned().into_bytes())))
    }

    /// Steps to the list's next element, or behind the list and returns false.
    pub(super) fn has_item(&mut self) -> Result<bool, Undecodable> {
        self.blank_and_comma();
        match self.text.get(self.at) {
            Some(b']') => {
                self.at += 1;
                Ok(false)
            }
            Some(_) => Ok(true),
            None => Err(self.broken(CUT)),
        }
    }

    /// Steps behind the value that starts here, and returns it.
    pub(super) fn value(&mut self) -> Result<Raw<'a>, Undecodable> {
        let from = skip_blank(self.text, self.at);
        if matches!(self.text.get(from), Some(b'}' | b']' | b',' | b':')) {
            return Err(self.broken(SYNTAX));
        }
        self.at = skip_value(self.text, from).ok_or_else(|| self.broken(CUT))?;
        Ok(Raw(&self.text[from..self.at]))
    }

    fn blank_and_comma(&mut self) {
        self.at = skip_blank(self.text, self.at);
        if self.text.get(self.at) == Some(&b',') {
            self.at = skip_blank(self.text, self.at + 1);
        }
    }

    fn broken(&mut self, reason: &'static str) -> Undecodable {
        self.at = self.text.len();
        Undecodable { reason }
    }
}

const CUT: &str = "it is cut off";
const SYNTAX: &str = "its syntax is broken";

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

/// Returns the place after the quotation mark that ends the string whose inside starts at `from`.
///
/// Looks for quotation marks only and then before them, since texts hold many more escapes than escaped marks.
fn skip_string(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let mark = find_mark(text, at)?;
        at = mark + 1;
        if text[mark - 1] != b'\\' {
            return Some(at);
        }
        let escapes = text[from..mark].iter().rev().take_while(|byte| **byte == b'\\').count();
        if escapes % 2 == 0 {
            return Some(at);
        }
    }
}

/// Returns where the next quotation mark is. Most are near, so the first bytes are looked at in words.
#[inline]
fn find_mark(text: &[u8], from: usize) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const MARKS: u64 = ONES * b'"' as u64;
    let mut at = from;
    for word in text.get(from..)?.as_chunks().0.iter().take(6) {
        let word = u64::from_le_bytes(*word) ^ MARKS;
        // The lowest bit that is left stands for the first byte that is zero.
        let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if zeros != 0 {
            return Some(at + (zeros.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    memchr::memchr(b'"', &text[at..]).map(|found| at + found)
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
        fn garbage_never_panics(bytes in prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(b"{}[]\",:\\u0d8tn ".to_vec())], 0..80)
        ) {
            if let Some(raw) = Raw::parse(&bytes) {
                let inner = raw.fields().count() + raw.items().count();
                prop_assert!(inner <= bytes.len());
                drop((raw.text(), raw.unsigned(), raw.float(), raw.field("a")));
            } else {
                prop_assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_err());
            }
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
        assert_eq!(Raw::parse(&deep).unwrap().fields().count(), 2);
    }
}
