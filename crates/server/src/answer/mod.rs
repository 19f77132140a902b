//! Answers: one function renders a decision into status, header fields and body, for every transport.
