//! Server-sent events, cut out of a stream whose pieces end anywhere.

/// Where a line of the stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// So many bytes of `data:` have been read.
    Name(usize),
    /// After `data:`, where one space is left out.
    Space,
    /// Within the value of `data`.
    Data,
    /// Within another field or a comment.
    Other,
}

const NAME: &[u8] = b"data:";

/// What the splitter found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SsePart<'a> {
    /// A piece of the data of the event.
    Data(&'a [u8]),
    /// The event ends with the last byte of this part.
    End,
    /// Something else.
    Other,
}

/// Finds data and ends of events.
#[derive(Debug)]
pub(super) struct SseSplitter {
    line: Line,
    /// A line ended with CR: an LF that follows belongs to it.
    after_cr: bool,
    /// Bytes of the byte order mark that have been read; `None` after the start of the stream.
    mark: Option<usize>,
    has_data: bool,
}

const MARK: &[u8] = b"\xef\xbb\xbf";

impl SseSplitter {
    pub(super) fn new() -> SseSplitter {
        SseSplitter { line: Line::Name(0), after_cr: false, mark: Some(0), has_data: false }
    }

    /// The next part of `bytes`, and how long it is; bytes are not empty.
    pub(super) fn next<'a>(&mut self, bytes: &'a [u8]) -> (SsePart<'a>, usize) {
        let Some(first) = bytes.first().copied() else { return (SsePart::Other, 0) };
        if let Some(read) = self.mark {
            self.mark = (MARK.get(read) == Some(&first)).then_some(read + 1).filter(|read| *read < MARK.len());
            if MARK.get(read) == Some(&first) {
                return (SsePart::Other, 1);
            }
        }
        if std::mem::take(&mut self.after_cr) && first == b'\n' {
            return (SsePart::Other, 1);
        }
        if matches!(first, b'\r' | b'\n') {
            return self.end_line(first, bytes.get(1).copied());
        }
        match self.line {
            Line::Name(read) => {
                let fits = NAME.get(read) == Some(&first);
                self.line = match fits {
                    true if read + 1 == NAME.len() => Line::Space,
                    true => Line::Name(read + 1),
                    false => Line::Other,
                };
                let again = self.line == Line::Space && std::mem::replace(&mut self.has_data, true);
                // Lines of data are joined by line feeds.
                (if again { SsePart::Data(b"\n") } else { SsePart::Other }, 1)
            }
            Line::Space => {
                self.line = Line::Data;
                match first {
                    b' ' => (SsePart::Other, 1),
                    _ => self.rest_of_line(bytes),
                }
            }
            Line::Data | Line::Other => self.rest_of_line(bytes),
        }
    }

    fn rest_of_line<'a>(&self, bytes: &'a [u8]) -> (SsePart<'a>, usize) {
        let length = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
        let data = bytes.get(..length).unwrap_or_default();
        (if self.line == Line::Data { SsePart::Data(data) } else { SsePart::Other }, length)
    }

    /// A line ends, and an event with a blank one. CR and LF are one end: clients look for both of them behind an event.
    fn end_line(&mut self, first: u8, second: Option<u8>) -> (SsePart<'static>, usize) {
        let is_blank = self.line == Line::Name(0);
        self.line = Line::Name(0);
        let is_pair = (first, second) == (b'\r', Some(b'\n'));
        self.after_cr = first == b'\r' && !is_pair;
        let length = if is_pair { 2 } else { 1 };
        if is_blank {
            self.has_data = false;
            return (SsePart::End, length);
        }
        (SsePart::Other, length)
    }
}
