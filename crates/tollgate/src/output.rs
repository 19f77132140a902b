//! Standard output and standard error: buffered, coloured on a terminal, tolerant of closed pipes.
//!
//! A closed pipe (`| head`) is not an error: further output is dropped, the command continues, and its exit code does
//! not change.

use std::io::{self, BufRead, BufWriter, IsTerminal, Read, Stderr, Stdout, Write};

use anstream::{AutoStream, ColorChoice};
use serde_json::Value;
use tollgate_rules::Report;

use crate::client::ApiProblem;
use crate::exit::Exit;
use tollgate_terminal::{Palette, colour_report, visible};

/// Standard output and standard error of this process.
pub struct Output {
    out: BufWriter<Stdout>,
    err: Stderr,
    out_palette: Palette,
    err_palette: Palette,
    is_terminal: bool,
    err_is_terminal: bool,
    /// True while a progress line is shown.
    in_progress: bool,
    closed: bool,
}

impl Output {
    /// The streams of this process. Colours only on a terminal, subject to `NO_COLOR` and `CLICOLOR_FORCE`.
    pub fn of_process() -> Output {
        let palette = |choice: ColorChoice| Palette { colour: choice != ColorChoice::Never };
        Output {
            out_palette: palette(AutoStream::choice(&io::stdout())),
            err_palette: palette(AutoStream::choice(&io::stderr())),
            is_terminal: io::stdout().is_terminal(),
            err_is_terminal: io::stderr().is_terminal(),
            in_progress: false,
            out: BufWriter::new(io::stdout()),
            err: io::stderr(),
            closed: false,
        }
    }

    /// The colours of standard output.
    pub fn palette(&self) -> Palette {
        self.out_palette
    }

    /// True if standard output is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// True after the reader closed the pipe: work that only produces output may stop.
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
        if self.is_terminal { self.write_stdout(BufWriter::flush) } else { Ok(()) }
    }

    /// Writes bytes to standard output.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_stdout(|out| out.write_all(bytes))
    }

    /// Writes what is buffered.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write_stdout(BufWriter::flush)
    }

    /// Writes a JSON document over several lines.
    pub fn json(&mut self, value: &Value) -> io::Result<()> {
        self.line(&format!("{value:#}"))
    }

    /// Writes a JSON document on one line.
    pub fn json_line(&mut self, value: &Value) -> io::Result<()> {
        self.line(&value.to_string())
    }

    /// Prints an error to standard error, after the buffered output.
    pub fn error(&mut self, error: &anyhow::Error) {
        let _ = self.write_stdout(BufWriter::flush); // reported when the command ends
        if let Some(report) = error.downcast_ref::<Report>() {
            self.write_stderr(&colour_report(report, self.err_palette));
        } else if let Some(problem) = error.downcast_ref::<ApiProblem>() {
            self.write_stderr(&problem.lines(self.err_palette));
        } else {
            let message = visible(&format!("{error:#}"));
            self.write_stderr(&format!("{}: {message}\n", self.err_palette.bad("error")));
        }
    }

    /// Shows progress on a terminal, on a line that is overwritten; an empty text removes it.
    pub fn progress(&mut self, text: &str) {
        if self.err_is_terminal && (self.in_progress || !text.is_empty()) {
            self.write_stderr(&format!("\r\u{1b}[K{}", visible(text)));
            self.in_progress = !text.is_empty();
        }
    }

    /// Asks for confirmation on a terminal; `None` if there is no terminal.
    pub fn confirm(&mut self, question: &str) -> Option<bool> {
        if !self.err_is_terminal || !io::stdin().is_terminal() {
            return None;
        }
        let _ = self.write_stdout(BufWriter::flush); // reported when the command ends
        self.write_stderr(&format!("{} [y/N] ", visible(question)));
        let mut answer = String::new();
        let read = io::stdin().lock().take(16).read_line(&mut answer);
        Some(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    /// Prints a warning to standard error.
    pub fn warning(&mut self, text: &str) {
        let _ = self.write_stdout(BufWriter::flush); // reported when the command ends
        self.write_stderr(&format!("{}: {}\n", self.err_palette.warn("warning"), visible(text)));
    }

    /// Writes the buffered output. Lost output is a failure.
    pub fn finish(mut self) -> Exit {
        match self.write_stdout(BufWriter::flush) {
            Ok(()) => Exit::Ok,
            Err(error) => {
                self.write_stderr(&format!("error: cannot write the output: {error}\n"));
                Exit::Unusable
            }
        }
    }

    fn write_stderr(&mut self, text: &str) {
        let _ = self.err.write_all(text.as_bytes()); // there is no other stream to report the error to
    }

    fn write_stdout(&mut self, write: impl FnOnce(&mut BufWriter<Stdout>) -> io::Result<()>) -> io::Result<()> {
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
