//! The only way to the terminal: buffered, coloured where a person looks, quiet when nobody listens any more.
//!
//! A reader who closes the pipe (`| head`) is no error: what is left is dropped, the command runs on, and its exit code
//! stays the true one.

use std::io::{self, BufWriter, IsTerminal, Stderr, Stdout, Write};

use anstream::{AutoStream, ColorChoice};
use serde_json::Value;
use tollgate_rules::Report;

use crate::exit::Exit;
use crate::render::{Palette, colour_report, visible};

/// Standard output and standard error of this process.
pub struct Output {
    out: BufWriter<Stdout>,
    err: Stderr,
    out_palette: Palette,
    err_palette: Palette,
    is_terminal: bool,
    closed: bool,
}

impl Output {
    /// The process's own streams. Colours only on a terminal; `NO_COLOR` and `CLICOLOR_FORCE` are heard.
    pub fn of_process() -> Output {
        let palette = |choice: ColorChoice| Palette { colour: choice != ColorChoice::Never };
        Output {
            out_palette: palette(AutoStream::choice(&io::stdout())),
            err_palette: palette(AutoStream::choice(&io::stderr())),
            is_terminal: io::stdout().is_terminal(),
            out: BufWriter::new(io::stdout()),
            err: io::stderr(),
            closed: false,
        }
    }

    /// The colours of standard output.
    pub fn palette(&self) -> Palette {
        self.out_palette
    }

    /// True if a person watches: progress is worth telling.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// True once nobody reads: long work for the eyes only may stop.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes text to standard output.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.bytes(text.as_bytes())
    }

    /// Writes one line to standard output.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        self.text(line)?;
        self.text("\n")?;
        if self.is_terminal { self.keep(BufWriter::flush) } else { Ok(()) }
    }

    /// Writes bytes to standard output.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.keep(|out| out.write_all(bytes))
    }

    /// Writes what is buffered.
    pub fn flush(&mut self) -> io::Result<()> {
        self.keep(BufWriter::flush)
    }

    /// Writes a JSON document over several lines.
    pub fn json(&mut self, value: &Value) -> io::Result<()> {
        self.line(&format!("{value:#}"))
    }

    /// Writes a JSON document on one line.
    pub fn json_line(&mut self, value: &Value) -> io::Result<()> {
        self.line(&value.to_string())
    }

    /// Says on standard error why a command could not do its work, after what was said before.
    pub fn error(&mut self, error: &anyhow::Error) {
        let _ = self.keep(BufWriter::flush); // reported when the command ends
        match error.downcast_ref::<Report>() {
            Some(report) => self.complain(&colour_report(report, self.err_palette)),
            None => {
                let message = visible(&format!("{error:#}"));
                self.complain(&format!("{}: {message}\n", self.err_palette.bad("error")));
            }
        }
    }

    /// Says on standard error what is probably not as meant.
    pub fn warning(&mut self, text: &str) {
        let _ = self.keep(BufWriter::flush); // reported when the command ends
        self.complain(&format!("{}: {}\n", self.err_palette.warn("warning"), visible(text)));
    }

    /// Writes what is still buffered; output that is lost makes any answer unusable.
    pub fn finish(mut self) -> Exit {
        match self.keep(BufWriter::flush) {
            Ok(()) => Exit::Ok,
            Err(error) => {
                self.complain(&format!("error: cannot write the output: {error}\n"));
                Exit::Unusable
            }
        }
    }

    fn complain(&mut self, text: &str) {
        let _ = self.err.write_all(text.as_bytes()); // nowhere left to say that this failed
    }

    fn keep(&mut self, write: impl FnOnce(&mut BufWriter<Stdout>) -> io::Result<()>) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        match write(&mut self.out) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            other => other,
        }
    }
}
