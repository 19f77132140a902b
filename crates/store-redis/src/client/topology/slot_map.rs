//! The slot map of a cluster.

use tollgate_resp::RespValue;

use crate::client::address::HostPort;
use crate::client::slot::SLOTS;

/// The primaries and their slots. An index per slot keeps the lookup to one load per request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotMap {
    primaries: Vec<HostPort>,
    /// Index into `primaries`; [`UNSERVED`] for a slot without a primary.
    slots: Box<[u16]>,
}

const UNSERVED: u16 = u16::MAX;

impl SlotMap {
    /// A map without servers.
    pub(super) fn empty() -> SlotMap {
        SlotMap { primaries: Vec::new(), slots: vec![UNSERVED; usize::from(SLOTS)].into() }
    }

    /// Reads the reply of the server at `asked` to `CLUSTER SLOTS`; `None` if it is malformed.
    pub(super) fn read(reply: &RespValue, asked: &HostPort) -> Option<SlotMap> {
        let mut map = SlotMap::empty();
        for range in reply.array()? {
            let [first, last, primary, ..] = range.array()? else { return None };
            let (first, last) = (usize::try_from(first.integer()?).ok()?, usize::try_from(last.integer()?).ok()?);
            let primary = map.place_of(address(primary, asked)?)?;
            map.slots.get_mut(first..=last)?.fill(primary);
        }
        (!map.primaries.is_empty()).then_some(map)
    }

    /// The primaries.
    pub(super) fn primaries(&self) -> &[HostPort] {
        &self.primaries
    }

    /// The index of the primary that serves `slot`.
    pub(super) fn place(&self, slot: u16) -> Option<usize> {
        let place = *self.slots.get(usize::from(slot))?;
        (place != UNSERVED).then_some(usize::from(place))
    }

    /// Number of slots without a primary.
    pub(super) fn uncovered(&self) -> usize {
        self.slots.iter().filter(|place| **place == UNSERVED).count()
    }

    fn place_of(&mut self, address: HostPort) -> Option<u16> {
        let place = self.primaries.iter().position(|other| *other == address).unwrap_or(self.primaries.len());
        if place == self.primaries.len() {
            self.primaries.push(address);
        }
        u16::try_from(place).ok()
    }
}

/// A node of the reply. One without a host is the server that replied.
fn address(node: &RespValue, asked: &HostPort) -> Option<HostPort> {
    let [host, port, ..] = node.array()? else { return None };
    let host = match host.text() {
        None | Some(b"" | b"?") => asked.host.clone(),
        Some(host) => std::str::from_utf8(host).ok()?.to_owned(),
    };
    Some(HostPort { host, port: u16::try_from(port.integer()?).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: &'static str, port: i64) -> RespValue {
        RespValue::Array(vec![RespValue::Text(host.into()), RespValue::Integer(port), RespValue::Text("id".into())])
    }

    fn range(first: i64, last: i64, nodes: Vec<RespValue>) -> RespValue {
        RespValue::Array([vec![RespValue::Integer(first), RespValue::Integer(last)], nodes].concat())
    }

    fn asked() -> HostPort {
        HostPort { host: "10.0.0.1".to_owned(), port: 7000 }
    }

    #[test]
    fn every_slot_finds_its_primary() {
        let reply = RespValue::Array(vec![
            range(0, 5460, vec![node("", 7000), node("10.0.0.4", 7003)]),
            range(5461, 10_922, vec![node("10.0.0.2", 7001)]),
            range(10_923, 16_000, vec![node("", 7000)]),
        ]);
        let map = SlotMap::read(&reply, &asked()).unwrap();
        let at = |slot| map.place(slot).and_then(|place| map.primaries().get(place)).map(ToString::to_string);
        assert_eq!(at(0).as_deref(), Some("10.0.0.1:7000"));
        assert_eq!(at(5461).as_deref(), Some("10.0.0.2:7001"));
        assert_eq!(at(16_000).as_deref(), Some("10.0.0.1:7000"));
        assert_eq!([5460, 5461, 10_922, 10_923].map(|slot| map.place(slot)), [Some(0), Some(1), Some(1), Some(0)]);
        assert_eq!((at(16_001), map.primaries().len(), map.uncovered()), (None, 2, 383));
    }

    #[test]
    fn malformed_maps_are_refused() {
        for reply in
            [RespValue::Nil, RespValue::Array(vec![]), RespValue::Array(vec![range(0, 20_000, vec![node("h", 1)])])]
        {
            assert_eq!(SlotMap::read(&reply, &asked()), None);
        }
    }
}
