//! What is reported of every decision.

/// A decision, for metrics and logs of the application.
#[derive(Clone, Copy, Debug)]
pub struct LimitEvent<'a> {
    /// Whether the request may pass.
    pub allowed: bool,
    /// It passes although it was refused: the layer is in shadow mode.
    pub shadow: bool,
    /// What decided: `store` and the other modes of a decision; `malformed` for a path that is answered 400.
    pub mode: &'a str,
    /// The deciding rule, if there is one.
    pub rule: Option<&'a str>,
    /// What was asked for.
    pub endpoint: &'a str,
    /// The status of the answer, if it is refused.
    pub status: Option<u16>,
}
