//! Cuts a stream of bytes into lines.
//!
//! How the bytes are split into chunks never matters. A line that lies within one chunk is handed on without a copy;
//! an unfinished one is kept once, and never more of it than the limit.

/// One line, without its line end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line; a `\r` before the newline is taken off.
    Whole(&'a [u8]),
    /// A line longer than the limit, of which only the length is left (a `\r` at its end counts).
    TooLong { bytes: u64 },
}

/// Room for an unfinished line that is kept from one line to the next.
const KEPT: usize = 1 << 20;

/// Cuts lines out of chunks.
#[derive(Debug)]
pub struct LineCutter {
    max_line: usize,
    unfinished: Vec<u8>,
    /// Bytes of the unfinished line that were dropped, once it grew over the limit.
    dropped: Option<u64>,
}

impl LineCutter {
    /// Returns a cutter that drops lines of more than `max_line` bytes.
    #[must_use]
    pub fn new(max_line: usize) -> Self {
        Self { max_line, unfinished: Vec::new(), dropped: None }
    }

    /// Takes the next bytes and hands each line that ends in them to `each`.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            if self.unfinished.is_empty() && self.dropped.is_none() {
                each(self.bounded(line));
            } else {
                self.keep(line);
                self.finish(&mut each);
            }
            rest = after;
        }
        self.keep(rest);
    }

    /// Hands a last line that has no newline to `each`; an empty one is none.
    pub fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        if let Some(bytes) = self.dropped.take() {
            each(Line::TooLong { bytes });
        } else if !self.unfinished.is_empty() {
            each(self.bounded(&self.unfinished));
            self.unfinished.clear();
            self.unfinished.shrink_to(KEPT);
        }
    }

    fn bounded<'a>(&self, line: &'a [u8]) -> Line<'a> {
        if line.len() > self.max_line {
            return Line::TooLong { bytes: line.len() as u64 };
        }
        Line::Whole(line.strip_suffix(b"\r").unwrap_or(line))
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(dropped) = &mut self.dropped {
            *dropped += bytes.len() as u64;
        } else if bytes.len() > self.max_line - self.unfinished.len() {
            self.dropped = Some((self.unfinished.len() + bytes.len()) as u64);
            self.unfinished = Vec::new();
        } else {
            self.unfinished.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    enum Owned {
        Whole(Vec<u8>),
        TooLong(u64),
    }

    fn cut<'a>(max_line: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Owned> {
        let mut lines = Vec::new();
        let mut cutter = LineCutter::new(max_line);
        let mut each = |line: Line<'_>| {
            lines.push(match line {
                Line::Whole(line) => Owned::Whole(line.to_vec()),
                Line::TooLong { bytes } => Owned::TooLong(bytes),
            });
        };
        for chunk in chunks {
            cutter.push(chunk, &mut each);
        }
        cutter.finish(&mut each);
        lines
    }

    #[test]
    fn a_line_end_is_a_newline_with_or_without_a_carriage_return() {
        let lines = cut(9, [&b"one\r\n\ntwo\nlast"[..]]);
        let expected = [&b"one"[..], b"", b"two", b"last"].map(|line| Owned::Whole(line.to_vec()));
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_line_over_the_limit_is_counted_and_the_next_one_is_whole() {
        for chunk in 1..20 {
            let bytes = b"aaaaaaaaaaaaaaa\nbb\n";
            assert_eq!(cut(4, bytes.chunks(chunk)), [Owned::TooLong(15), Owned::Whole(b"bb".to_vec())]);
        }
    }

    #[test]
    fn memory_is_given_back_after_a_huge_line() {
        let mut cutter = LineCutter::new(64 << 20);
        for _ in 0..32 {
            cutter.push(&[b'x'; 1 << 20], |_| ());
        }
        cutter.push(b"\nshort", |_| ());
        assert!(cutter.unfinished.capacity() <= KEPT, "{}", cutter.unfinished.capacity());
    }

    #[test]
    fn an_over_long_line_is_not_kept_while_it_streams() {
        let mut cutter = LineCutter::new(1 << 10);
        for _ in 0..100 {
            cutter.push(&[b'x'; 1 << 10], |_| ());
        }
        assert_eq!(cutter.unfinished.capacity(), 0);
    }

    proptest! {
        #[test]
        fn any_split_of_the_bytes_gives_the_same_lines(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200),
            mut cuts in prop::collection::vec(0usize..200, 0..12),
            max_line in 0usize..40,
        ) {
            cuts.retain(|cut| *cut <= bytes.len());
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            prop_assert_eq!(cut(max_line, chunks), cut(max_line, [&bytes[..]]));
        }
    }
}
