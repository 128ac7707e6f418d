//! One line of the agent, gathered in one walk over its bytes.
//!
//! Its type can come after all else (2.1.332 writes it late in a `result`), so the fields are gathered before any is
//! looked at. The two that can be large, the message and the structured tool result, are walked into on the way.

use super::launch::ToolResult;
use crate::wire::Undecodable;
use crate::wire::json::{Cursor, Key, Raw};

/// The fields of a line.
#[derive(Debug, Default)]
pub(in crate::wire) struct Line<'a> {
    fields: Vec<(Key<'a>, Raw<'a>)>,
    pub(in crate::wire) message: Message<'a>,
    /// `tool_use_result` of a stream, `toolUseResult` of a transcript.
    pub(in crate::wire) tool_result: Option<ToolResult<'a>>,
}

impl<'a> Line<'a> {
    /// Reads a line; None for one without anything in it.
    pub(in crate::wire) fn read(line: &'a [u8]) -> Result<Option<Self>, Undecodable> {
        let Some(mut cursor) = Cursor::of_line(line)? else { return Ok(None) };
        // More than any measured line but `result` and `init` has.
        let mut line = Self { fields: Vec::with_capacity(24), ..Self::default() };
        while let Some(key) = cursor.key()? {
            match &*key {
                b"message" => line.message = Message::read(&mut cursor)?,
                b"tool_use_result" | b"toolUseResult" => line.tool_result = ToolResult::read(&mut cursor)?,
                _ => line.fields.push((key, cursor.value()?)),
            }
        }
        Ok(Some(line))
    }

    /// Returns a field; of several with one name the last counts, as in `JSON.parse`.
    #[inline]
    pub(in crate::wire) fn get(&self, name: &str) -> Option<Raw<'a>> {
        self.fields.iter().rev().find(|(key, _)| **key == *name.as_bytes()).map(|(_, value)| *value)
    }

    /// Returns a string that is not empty.
    pub(in crate::wire) fn filled(&self, name: &str) -> Option<String> {
        self.get(name)?.filled()
    }

    pub(in crate::wire) fn is(&self, name: &str, text: &str) -> bool {
        self.get(name).is_some_and(|value| value.is(text))
    }

    pub(in crate::wire) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(Raw::is_true)
    }
}

/// The message in a line.
#[derive(Debug, Default)]
pub(in crate::wire) struct Message<'a> {
    pub(in crate::wire) model: Option<Raw<'a>>,
    pub(in crate::wire) stop_reason: Option<Raw<'a>>,
    pub(in crate::wire) content: Content<'a>,
}

/// What a message says.
#[derive(Debug, Default)]
pub(in crate::wire) enum Content<'a> {
    #[default]
    Nothing,
    Text(Raw<'a>),
    Blocks(Vec<Block<'a>>),
}

/// One block of a message.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::wire) struct Block<'a> {
    pub(in crate::wire) kind: Option<Raw<'a>>,
    pub(in crate::wire) id: Option<Raw<'a>>,
    pub(in crate::wire) name: Option<Raw<'a>>,
    pub(in crate::wire) input: Option<Raw<'a>>,
    pub(in crate::wire) text: Option<Raw<'a>>,
    pub(in crate::wire) tool_use_id: Option<Raw<'a>>,
    pub(in crate::wire) content: Option<Raw<'a>>,
    pub(in crate::wire) is_error: Option<Raw<'a>>,
}

impl Block<'_> {
    pub(in crate::wire) fn is(&self, kind: &str) -> bool {
        self.kind.is_some_and(|own| own.is(kind))
    }
}

impl<'a> Message<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Undecodable> {
        let mut message = Self::default();
        if !cursor.enter(b'{') {
            cursor.value()?;
            return Ok(message);
        }
        while let Some(key) = cursor.key()? {
            match &*key {
                b"content" => message.content = Content::read(cursor)?,
                b"model" => message.model = Some(cursor.value()?),
                b"stop_reason" => message.stop_reason = Some(cursor.value()?),
                _ => _ = cursor.value()?,
            }
        }
        Ok(message)
    }
}

impl<'a> Content<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Undecodable> {
        if !cursor.enter(b'[') {
            let value = cursor.value()?;
            return Ok(if value.escaped().is_some() { Self::Text(value) } else { Self::Nothing });
        }
        let mut blocks = Vec::new();
        while cursor.has_item()? {
            if cursor.enter(b'{') {
                blocks.push(Block::read(cursor)?);
            } else {
                cursor.value()?;
            }
        }
        Ok(Self::Blocks(blocks))
    }
}

impl<'a> Block<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Undecodable> {
        let mut block = Self::default();
        while let Some(key) = cursor.key()? {
            let value = Some(cursor.value()?);
            match &*key {
                b"type" => block.kind = value,
                b"id" => block.id = value,
                b"name" => block.name = value,
                b"input" => block.input = value,
                b"text" => block.text = value,
                b"tool_use_id" => block.tool_use_id = value,
                b"content" => block.content = value,
                b"is_error" => block.is_error = value,
                _ => {}
            }
        }
        Ok(block)
    }
}
