//! The id of a decision, under which logs, traces and operators find it.
//!
//! A decision keeps the random number that chose its shards anyway; the id is a keyed digest of it, made when it is asked
//! for. So a decision that is never named costs nothing, callers cannot choose or guess ids, and ids do not tell how many
//! decisions there were.

use std::fmt;
use std::sync::OnceLock;

use tollgate_core::KeyHasher;

use crate::{Decision, random};

/// The id of a decision: sixteen hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DecisionId(pub u64);

impl DecisionId {
    /// An id for a request that was refused before any decision.
    pub fn random() -> DecisionId {
        DecisionId::of(random::fast())
    }

    /// Reads an id as it is shown.
    pub fn parse(text: &str) -> Option<DecisionId> {
        let is_id = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        u64::from_str_radix(text, 16).ok().filter(|_| is_id).map(DecisionId)
    }

    /// The digits, without an allocation.
    pub fn digits(self) -> [u8; 16] {
        std::array::from_fn(|place| {
            let nibble = (self.0 >> (60 - 4 * place)) as u8 & 0xf;
            nibble + if nibble < 10 { b'0' } else { b'a' - 10 }
        })
    }

    pub(crate) fn of(nonce: u64) -> DecisionId {
        static KEY: OnceLock<KeyHasher> = OnceLock::new();
        let mut hasher = *KEY.get_or_init(|| KeyHasher::new(random::random_secret()));
        hasher.word(nonce);
        let [id, _] = hasher.finish().0;
        DecisionId(id)
    }
}

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Decision {
    /// Its id.
    pub fn id(&self) -> DecisionId {
        DecisionId::of(self.nonce)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tollgate_core::Request;

    use super::*;
    use crate::Engine;

    #[test]
    fn an_id_stays_with_its_decision_and_differs_from_all_others() {
        let rules = "key_by: global\nrules:\n  - { name: only, limit: { requests: 9, window: 1s } }\n";
        let engine = Engine::in_memory(crate::rules_from_yaml(rules).unwrap());
        let decisions: Vec<Decision> = (0..1000).map(|_| engine.decide_now(&Request::new())).collect();
        let ids: HashSet<DecisionId> = decisions.iter().map(Decision::id).collect();
        assert_eq!(ids.len(), 1000);
        assert_eq!(decisions[0].id(), decisions[0].id());
    }

    #[test]
    fn an_id_is_read_as_it_is_shown() {
        let id = DecisionId(0x0123_4567_89ab_cdef);
        assert_eq!(id.to_string(), "0123456789abcdef");
        assert_eq!(&id.digits(), b"0123456789abcdef");
        assert_eq!(DecisionId::parse("0123456789ABCDEF"), Some(id));
        for wrong in ["", "123", "0123456789abcdeg", "+123456789abcdef", "0123456789abcdef0", "é23456789abcde"] {
            assert_eq!(DecisionId::parse(wrong), None, "{wrong}");
        }
    }
}
