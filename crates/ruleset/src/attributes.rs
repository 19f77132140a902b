//! Interned names of attributes, so that each name of a request is looked up once.

use std::collections::HashMap;

use tollgate_core::Attribute;

/// The number of an attribute within one namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct AttrId(u16);

impl AttrId {
    pub(super) const CLIENT_KEY: AttrId = AttrId::known(Attribute::ClientKey);
    pub(super) const API_KEY: AttrId = AttrId::known(Attribute::ApiKey);
    pub(super) const USER_ID: AttrId = AttrId::known(Attribute::UserId);
    pub(super) const IP: AttrId = AttrId::known(Attribute::Ip);
    pub(super) const ORG: AttrId = AttrId::known(Attribute::Org);
    pub(super) const TIER: AttrId = AttrId::known(Attribute::Tier);
    pub(super) const ENDPOINT: AttrId = AttrId::known(Attribute::Endpoint);
    /// The method of the endpoint.
    pub(super) const METHOD: AttrId = AttrId(Attribute::ALL.len() as u16);
    /// The canonical path of the endpoint.
    pub(super) const PATH: AttrId = AttrId(AttrId::METHOD.0 + 1);
    /// The namespace itself.
    pub(super) const NAMESPACE: AttrId = AttrId(AttrId::METHOD.0 + 2);

    pub(super) const fn known(attribute: Attribute) -> AttrId {
        AttrId(attribute as u16)
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Whether the client key replaces it if absent: omitting a header does not bypass a rule.
    pub(super) fn falls_back(self) -> bool {
        self == AttrId::API_KEY || self == AttrId::USER_ID
    }
}

/// Built-in attributes, and those that rules of a namespace refer to.
#[derive(Clone, Debug)]
pub(super) struct Attributes {
    ids: HashMap<String, AttrId>,
    names: Vec<String>,
}

impl Attributes {
    pub(super) fn new() -> Attributes {
        let mut attributes = Attributes { ids: HashMap::new(), names: Vec::new() };
        let known = Attribute::ALL.map(Attribute::name);
        known.into_iter().chain(["method", "path", "namespace"]).for_each(|name| {
            attributes.intern(name);
        });
        attributes
    }

    /// The number of `name`, which is added if it is new. Names beyond 65,536 share the last number.
    pub(super) fn intern(&mut self, name: &str) -> AttrId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = AttrId(u16::try_from(self.names.len()).unwrap_or(u16::MAX));
        self.ids.insert(name.to_owned(), id);
        self.names.push(name.to_owned());
        id
    }

    pub(super) fn find(&self, name: &str) -> Option<AttrId> {
        self.ids.get(name).copied()
    }

    pub(super) fn name(&self, id: AttrId) -> &str {
        self.names.get(id.index()).map_or("?", String::as_str)
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
}
