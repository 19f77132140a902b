//! A scanner of JSON that is fed pieces, cut anywhere.

use super::deep::DeepValue;
use super::number::NumberState;
use super::path::JsonPath;
use super::text::{TextByte, TextReader};

/// Deepest nesting that has a path.
const DEPTH_MAX: usize = 64;

/// What the scanner meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonEvent<'a> {
    /// An object starts.
    Object,
    /// A list starts.
    List,
    /// The object or list ends.
    End,
    /// A key; the path names it already.
    Key {
        /// Its length without escapes, in bytes.
        bytes: u64,
    },
    /// A text.
    Text {
        /// Its content, if it is short.
        text: Option<&'a str>,
        /// Its length without escapes, in bytes.
        bytes: u64,
    },
    /// A number; empty if it has more digits than any amount.
    Number(&'a str),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
}

/// What the caller does with what the scanner meets. `offset` is that of the last byte of the event's token.
pub(crate) trait JsonSink {
    /// Called for each event, in order.
    fn event(&mut self, path: &JsonPath, event: JsonEvent<'_>, offset: u64);

    /// Called for content in pieces of any length, before the event of the whole.
    fn part(&mut self, _path: &JsonPath, _kind: JsonPart, _bytes: &[u8]) {}
}

/// What a piece of content is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonPart {
    /// A text, without escapes.
    Text,
    /// A key, without escapes; the last step of the path is still that of the field before.
    Key,
    /// A number.
    Number,
    /// A value that is nested too deeply to be looked into, as it is written.
    Deep,
}

/// Why a text is not read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonFault {
    /// It is not JSON, from this byte on.
    Syntax(u64),
    /// It is nested too deeply.
    TooDeep,
    /// It ends too early.
    Incomplete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    AfterValue,
    Text {
        is_key: bool,
    },
    Number(NumberState),
    /// `true`, `false` or `null`: what is left of it.
    Word {
        rest: &'static [u8],
        event: JsonEvent<'static>,
    },
    /// Within a value that is nested too deeply to be looked into.
    Deep(DeepValue),
    Done,
}

/// Reads one JSON text.
#[derive(Debug)]
pub(crate) struct JsonScanner {
    state: State,
    path: JsonPath,
    /// The key, text or number being read.
    text: TextReader,
    offset: u64,
    fault: Option<JsonFault>,
    /// Whether it reads on where a strict one has a fault, as far as common parsers do.
    is_tolerant: bool,
}

impl JsonScanner {
    /// A scanner that accepts what RFC 8259 allows, up to a depth: for requests, which can be refused.
    pub(crate) fn strict() -> JsonScanner {
        JsonScanner {
            state: State::Value,
            path: JsonPath::default(),
            text: TextReader::default(),
            offset: 0,
            fault: None,
            is_tolerant: false,
        }
    }

    /// A scanner that also reads halves of surrogate pairs, bytes that are not UTF-8, and around values that are nested
    /// deeply: for responses, which are passed on whatever they hold.
    pub(crate) fn tolerant() -> JsonScanner {
        JsonScanner { text: TextReader::tolerant(), is_tolerant: true, ..JsonScanner::strict() }
    }

    /// Whether the whole value has been read, and nothing behind it.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done && self.fault.is_none()
    }

    /// Whether the rest is not read.
    pub(crate) fn is_faulty(&self) -> bool {
        self.fault.is_some()
    }

    /// Reads a piece; how many of its bytes are not read, because of a fault in it or before it.
    pub(crate) fn feed_or_skip(&mut self, bytes: &[u8], sink: &mut impl JsonSink) -> u64 {
        let before = self.offset;
        match self.feed(bytes, sink) {
            Ok(()) => 0,
            Err(_) => (bytes.len() as u64).saturating_sub(self.offset - before),
        }
    }

    /// Reads a piece. After a fault nothing is read any more.
    pub(crate) fn feed(&mut self, bytes: &[u8], sink: &mut impl JsonSink) -> Result<(), JsonFault> {
        let mut rest = bytes;
        while let Some((byte, after)) = rest.split_first() {
            if let Some(fault) = self.fault {
                return Err(fault);
            }
            let many = self.step_over_many(rest, sink);
            if many > 0 {
                self.offset += many as u64;
                rest = rest.get(many..).unwrap_or_default();
                continue;
            }
            match self.step(*byte, sink) {
                Ok(Progress::Taken) => {
                    self.offset += 1;
                    rest = after;
                }
                // A number ends before the byte that follows it.
                Ok(Progress::Again) => {}
                Err(fault) => self.fault = Some(fault),
            }
        }
        self.fault.map_or(Ok(()), Err)
    }

    /// The end of the text.
    pub(crate) fn end(&mut self, sink: &mut impl JsonSink) -> Result<(), JsonFault> {
        if let State::Number(number) = self.state
            && self.fault.is_none()
            && self.path.depth() == 0
            && number.may_end()
        {
            self.end_number(sink);
        }
        match self.fault {
            Some(fault) => Err(fault),
            None if self.is_done() => Ok(()),
            None => Err(JsonFault::Incomplete),
        }
    }

    /// Reads what need not be looked at byte by byte; how much that is.
    fn step_over_many(&mut self, bytes: &[u8], sink: &mut impl JsonSink) -> usize {
        match self.state {
            State::Text { is_key } => {
                let plain = self.text.take_plain(bytes);
                if plain > 0 {
                    sink.part(&self.path, part_of_text(is_key), bytes.get(..plain).unwrap_or_default());
                }
                plain
            }
            State::Deep(mut deep) => {
                let length = deep.skip(bytes);
                self.state = State::Deep(deep);
                sink.part(&self.path, JsonPart::Deep, bytes.get(..length).unwrap_or_default());
                if deep.is_over() {
                    sink.event(&self.path, JsonEvent::End, self.offset + (length as u64).saturating_sub(1));
                    self.value_ends();
                }
                length
            }
            _ => 0,
        }
    }

    fn step(&mut self, byte: u8, sink: &mut impl JsonSink) -> Result<Progress, JsonFault> {
        match self.state {
            State::Text { is_key } => self.take_text(byte, is_key, sink)?,
            State::Number(number) => return self.number(byte, number, sink),
            State::Word { rest, event } => self.word(byte, rest, event, sink)?,
            _ if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') => {}
            State::Value => self.value(byte, sink)?,
            State::ValueOrEnd if byte == b']' => self.leave(sink),
            State::ValueOrEnd => self.value(byte, sink)?,
            State::KeyOrEnd if byte == b'}' => self.leave(sink),
            State::Key | State::KeyOrEnd if byte == b'"' => self.start_text(true),
            State::Colon if byte == b':' => self.state = State::Value,
            State::AfterValue => self.after_value(byte, sink)?,
            State::Key | State::KeyOrEnd | State::Colon | State::Deep(_) | State::Done => return Err(self.syntax()),
        }
        Ok(Progress::Taken)
    }

    fn syntax(&self) -> JsonFault {
        JsonFault::Syntax(self.offset)
    }

    fn value(&mut self, byte: u8, sink: &mut impl JsonSink) -> Result<(), JsonFault> {
        let is_too_deep = matches!(byte, b'{' | b'[') && self.path.depth() == DEPTH_MAX;
        if is_too_deep && !self.is_tolerant {
            return Err(JsonFault::TooDeep);
        }
        match byte {
            _ if is_too_deep => {
                sink.event(&self.path, if byte == b'{' { JsonEvent::Object } else { JsonEvent::List }, self.offset);
                self.state = State::Deep(DeepValue::new());
            }
            b'{' => {
                sink.event(&self.path, JsonEvent::Object, self.offset);
                self.path.enter_object();
                self.state = State::KeyOrEnd;
            }
            b'[' => {
                sink.event(&self.path, JsonEvent::List, self.offset);
                self.path.enter_list();
                self.state = State::ValueOrEnd;
            }
            b'"' => self.start_text(false),
            b'-' => self.start_number(byte, NumberState::Minus, sink),
            b'0' => self.start_number(byte, NumberState::Zero, sink),
            b'1'..=b'9' => self.start_number(byte, NumberState::Whole, sink),
            b't' => self.state = State::Word { rest: b"rue", event: JsonEvent::Bool(true) },
            b'f' => self.state = State::Word { rest: b"alse", event: JsonEvent::Bool(false) },
            b'n' => self.state = State::Word { rest: b"ull", event: JsonEvent::Null },
            _ => return Err(self.syntax()),
        }
        Ok(())
    }

    fn after_value(&mut self, byte: u8, sink: &mut impl JsonSink) -> Result<(), JsonFault> {
        match (byte, self.path.is_in_list()) {
            (b',', true) => {
                self.path.next_item();
                self.state = State::Value;
            }
            (b',', false) => self.state = State::Key,
            (b']', true) | (b'}', false) => self.leave(sink),
            _ => return Err(self.syntax()),
        }
        Ok(())
    }

    fn leave(&mut self, sink: &mut impl JsonSink) {
        self.path.leave();
        sink.event(&self.path, JsonEvent::End, self.offset);
        self.value_ends();
    }

    fn value_ends(&mut self) {
        self.state = if self.path.depth() == 0 { State::Done } else { State::AfterValue };
    }

    fn start_text(&mut self, is_key: bool) {
        self.text.start();
        self.state = State::Text { is_key };
    }

    fn take_text(&mut self, byte: u8, is_key: bool, sink: &mut impl JsonSink) -> Result<(), JsonFault> {
        let taken = self.text.take(byte);
        match taken {
            TextByte::Fault => return Err(self.syntax()),
            TextByte::Part | TextByte::End if !self.text.added().is_empty() => {
                sink.part(&self.path, part_of_text(is_key), self.text.added());
            }
            TextByte::Part | TextByte::End => {}
        }
        match taken {
            TextByte::Part | TextByte::Fault => {}
            TextByte::End if is_key => {
                self.path.set_key(self.text.content());
                sink.event(&self.path, JsonEvent::Key { bytes: self.text.bytes() }, self.offset);
                self.state = State::Colon;
            }
            TextByte::End => {
                let event = JsonEvent::Text { text: self.text.content(), bytes: self.text.bytes() };
                sink.event(&self.path, event, self.offset);
                self.value_ends();
            }
        }
        Ok(())
    }

    fn word(
        &mut self,
        byte: u8,
        rest: &'static [u8],
        event: JsonEvent<'static>,
        sink: &mut impl JsonSink,
    ) -> Result<(), JsonFault> {
        match rest.split_first() {
            Some((wanted, rest)) if *wanted == byte && !rest.is_empty() => self.state = State::Word { rest, event },
            Some((wanted, _)) if *wanted == byte => {
                sink.event(&self.path, event, self.offset);
                self.value_ends();
            }
            _ => return Err(self.syntax()),
        }
        Ok(())
    }

    fn start_number(&mut self, byte: u8, number: NumberState, sink: &mut impl JsonSink) {
        self.text.start();
        self.text.add(&[byte]);
        sink.part(&self.path, JsonPart::Number, &[byte]);
        self.state = State::Number(number);
    }

    fn number(&mut self, byte: u8, number: NumberState, sink: &mut impl JsonSink) -> Result<Progress, JsonFault> {
        match number.next(byte) {
            Some(next) => {
                self.text.add(&[byte]);
                sink.part(&self.path, JsonPart::Number, &[byte]);
                self.state = State::Number(next);
                Ok(Progress::Taken)
            }
            None if number.may_end() => {
                self.end_number(sink);
                Ok(Progress::Again)
            }
            None => Err(self.syntax()),
        }
    }

    fn end_number(&mut self, sink: &mut impl JsonSink) {
        let event = JsonEvent::Number(self.text.content().unwrap_or_default());
        sink.event(&self.path, event, self.offset.saturating_sub(1));
        self.value_ends();
    }
}

fn part_of_text(is_key: bool) -> JsonPart {
    if is_key { JsonPart::Key } else { JsonPart::Text }
}

/// Whether a byte was used up.
enum Progress {
    Taken,
    Again,
}

/// Reads a whole text.
pub(crate) fn scan_all(bytes: &[u8], sink: &mut impl JsonSink) -> Result<(), JsonFault> {
    let mut scanner = JsonScanner::strict();
    scanner.feed(bytes, sink)?;
    scanner.end(sink)
}
