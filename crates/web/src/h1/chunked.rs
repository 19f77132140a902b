//! Decodes or checks a chunked body incrementally. Strict where lenient readers disagree.

/// Longest line of a chunk: its size in hex and extensions, which are ignored.
const LINE_MAX: usize = 256;
/// Most digits of a size. With sixteen, a reader that adds the line end to the size overflows 64 bits.
const DIGITS_MAX: u32 = 15;
/// Longest trailer section, which is read and discarded.
const TRAILERS_MAX: usize = 1024;

/// State of the decoder.
#[derive(Debug, Default)]
pub struct Chunked {
    state: State,
    /// Bytes of the current line, or of all trailers.
    line: usize,
    size: u64,
    digits: u32,
    /// Bytes of data so far.
    length: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    Trailer,
    TrailerLf,
    EndLf,
    Done,
}

/// Why chunks cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadChunk {
    /// Not valid chunks.
    Malformed,
    /// The body exceeds its limit.
    TooLarge,
}

impl Chunked {
    /// Passes the data in `bytes` to `keep`; returns how many bytes it consumed. More data than `max_body` is an error.
    pub fn decode(&mut self, bytes: &[u8], max_body: u64, mut keep: impl FnMut(&[u8])) -> Result<usize, BadChunk> {
        let mut used = 0;
        while self.state != State::Done {
            let Some(rest) = bytes.get(used..).filter(|rest| !rest.is_empty()) else { break };
            used += match self.state {
                State::Data => self.data(rest, max_body, &mut keep)?,
                _ => self.byte(rest.first().copied().unwrap_or_default(), max_body)?,
            };
        }
        Ok(used)
    }

    /// True once the last chunk and the trailers were read.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    fn data(&mut self, rest: &[u8], max_body: u64, keep: &mut impl FnMut(&[u8])) -> Result<usize, BadChunk> {
        let some = rest.len().min(usize::try_from(self.size).unwrap_or(usize::MAX));
        self.length += some as u64;
        if self.length > max_body {
            return Err(BadChunk::TooLarge);
        }
        keep(rest.get(..some).unwrap_or_default());
        self.size -= some as u64;
        if self.size == 0 {
            self.state = State::DataCr;
        }
        Ok(some)
    }

    fn byte(&mut self, byte: u8, max_body: u64) -> Result<usize, BadChunk> {
        self.line += 1;
        self.state = match (self.state, byte) {
            (State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                (self.size, self.digits) = (self.size << 4 | u64::from(digit), self.digits + 1);
                if self.digits > DIGITS_MAX {
                    return Err(BadChunk::Malformed);
                }
                State::Size
            }
            // Only once the size is complete: more digits may still make it invalid.
            (State::Size, b';' | b'\r') if self.digits > 0 && self.size > max_body => {
                return Err(BadChunk::TooLarge);
            }
            (State::Size, b';') if self.digits > 0 => State::Extension,
            (State::Size | State::Extension, b'\r') if self.digits > 0 => State::SizeLf,
            (State::Extension, b'\t' | b' '..=b'~') => State::Extension,
            (State::SizeLf, b'\n') if self.size == 0 => self.start_line(State::TrailerStart),
            (State::SizeLf, b'\n') => State::Data,
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => self.start_line(State::Size),
            (State::TrailerStart, b'\r') => State::EndLf,
            (State::TrailerStart | State::Trailer, b'\t' | b' '..=b'~') => State::Trailer,
            (State::Trailer, b'\r') => State::TrailerLf,
            (State::TrailerLf, b'\n') => State::TrailerStart,
            (State::EndLf, b'\n') => State::Done,
            _ => return Err(BadChunk::Malformed),
        };
        let most = if self.state == State::Trailer { TRAILERS_MAX } else { LINE_MAX };
        let counts = matches!(self.state, State::Size | State::Extension | State::Trailer);
        if counts && self.line > most { Err(BadChunk::Malformed) } else { Ok(1) }
    }

    fn start_line(&mut self, state: State) -> State {
        (self.line, self.size, self.digits) = (0, 0, 0);
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes the bytes in pieces of every size, which must not change the result.
    fn decode(bytes: &[u8]) -> Result<Option<Vec<u8>>, BadChunk> {
        let whole = decode_by(bytes, bytes.len().max(1));
        for size in 1..bytes.len() {
            assert_eq!(decode_by(bytes, size), whole, "in pieces of {size}");
        }
        whole
    }

    fn decode_by(bytes: &[u8], size: usize) -> Result<Option<Vec<u8>>, BadChunk> {
        let (mut chunked, mut body) = (Chunked::default(), Vec::new());
        for piece in bytes.chunks(size) {
            let used = chunked.decode(piece, 64, |data| body.extend_from_slice(data))?;
            assert!(used == piece.len() || chunked.is_done());
        }
        Ok(chunked.is_done().then_some(body))
    }

    #[test]
    fn decodes_chunks_extensions_and_trailers() {
        assert_eq!(decode(b"3\r\nabc\r\n2;x=\"y\"\r\nde\r\n0\r\n\r\n"), Ok(Some(b"abcde".to_vec())));
        assert_eq!(decode(b"0\r\nX: y\r\nZ: w\r\n\r\nrest"), Ok(Some(Vec::new())));
        assert_eq!(decode(b"A\r\n0123456789\r\n00\r\n\r\n"), Ok(Some(b"0123456789".to_vec())));
        assert_eq!(decode(b"3\r\nabc\r\n"), Ok(None), "incomplete");
    }

    #[test]
    fn refuses_ambiguous_and_oversized_chunks() {
        let long = format!("1;{}\r\n", "x".repeat(300));
        let many = "ffffffffffffffff\r\n";
        let zeros = "0000000000000001\r\ny";
        let bad = [
            "\r\n",
            "x\r\n",
            "3 \r\nabc",
            " 3\r\nabc",
            "0x3\r\nabc",
            "3\nabc",
            "3\r\nabcd",
            "-1\r\n",
            "+1\r\n",
            &long,
            many,
            zeros,
        ];
        for bytes in bad {
            assert_eq!(decode(bytes.as_bytes()), Err(BadChunk::Malformed), "{bytes:?}");
        }
        for bytes in ["41\r\n", "41;x\r\n", "fffffffffffffff\r\n", "40\r\n"] {
            let filled = [bytes.as_bytes(), &[b'x'; 64], b"\r\n1\r\ny"].concat();
            assert_eq!(decode(&filled), Err(BadChunk::TooLarge), "{bytes:?}");
        }
    }
}
