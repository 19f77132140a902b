//! Interim responses that wait until they can be written in front of their response.

/// Bytes of all interim responses to one request: a server that sends more of them has its caller wait no less.
const BYTES_MAX: usize = 16 << 10;

/// Interim responses to the current message that have not been written.
#[derive(Debug, Default)]
pub(crate) struct InterimQueue {
    bytes: Vec<u8>,
    /// Bytes of all that were queued.
    total: usize,
    /// The response has begun.
    is_closed: bool,
}

impl InterimQueue {
    fn take(&mut self) -> Option<Vec<u8>> {
        (!self.bytes.is_empty()).then(|| std::mem::take(&mut self.bytes))
    }

    pub(crate) fn push(&mut self, head: &[u8]) -> bool {
        let has_room = !self.is_closed && self.total + head.len() <= BYTES_MAX;
        if has_room {
            self.total += head.len();
            self.bytes.extend_from_slice(head);
        }
        has_room
    }

    pub(crate) const fn close(&mut self) {
        self.is_closed = true;
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Before bytes of hyper. If not all before them was flushed, they may begin with the end of the last response; once
    /// this response has begun they may also contain its head, and it is too late.
    pub(crate) fn take_before_response(&mut self, is_flushed: bool) -> Option<Vec<u8>> {
        match (is_flushed, self.is_closed) {
            (true, _) => self.take(),
            (false, true) => {
                self.bytes = Vec::new();
                None
            }
            (false, false) => None,
        }
    }

    /// While hyper has nothing to write: before the response, or it is too late.
    pub(crate) fn take_while_waiting(&mut self) -> Option<Vec<u8>> {
        self.take().filter(|_| !self.is_closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(heads: &[&[u8]]) -> InterimQueue {
        let mut queue = InterimQueue::default();
        assert!(heads.iter().all(|head| queue.push(head)));
        queue
    }

    #[test]
    fn what_was_queued_comes_before_the_response_and_never_into_it() {
        assert_eq!(queue(&[b"a", b"b"]).take_while_waiting(), Some(b"ab".to_vec()));
        let mut last_minute = queue(&[b"a"]);
        last_minute.close();
        assert!(!last_minute.push(b"b"), "the response has begun");
        assert_eq!(last_minute.take_before_response(true), Some(b"a".to_vec()), "its head is not written yet");
        assert_eq!(last_minute.take_before_response(true), None);
        let mut late = queue(&[b"a"]);
        assert_eq!(late.take_before_response(false), None, "the end of the last response");
        late.close();
        assert_eq!(late.take_before_response(false), None);
        assert_eq!(late.take_before_response(true), None, "its head is out");
        let mut written = queue(&[b"a"]);
        written.close();
        assert_eq!(written.take_while_waiting(), None);
    }

    #[test]
    fn a_flood_of_them_is_cut() {
        let mut queue = InterimQueue::default();
        let head = [b'x'; 1 << 10];
        assert_eq!((0..100).filter(|_| queue.push(&head) && queue.take().is_some()).count(), 16);
    }
}
