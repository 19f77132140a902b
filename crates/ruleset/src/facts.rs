//! A request prepared for matching: attributes by number, canonical values, and attributes of the client.

use std::collections::BTreeSet;
use std::fmt;

use smallvec::SmallVec;
use tollgate_core::{Attribute, LimitError, Request, Secret, Time};
use tollgate_rules::address::{IpKey, parse_ip};
use tollgate_rules::nearest;
use tollgate_rules::path::{Endpoint, PATH_BYTES_MAX, PathError, canonical_path};
use tollgate_rules::spec;

use super::CompiledNamespace;
use super::attributes::AttrId;
use super::directories::{GrantTerms, RequestOverrides};
use super::rule::Rule;
use crate::directory::{self, Identity, PackedOverride};

/// Longest value of an attribute.
pub(super) const VALUE_BYTES_MAX: usize = 4096;
/// Largest number of custom attributes in a request.
pub(super) const CUSTOM_MAX: usize = 64;

const MIXED: &str = "mixed_purposes";

/// All values that a rule may match on or count by.
pub(super) struct RequestFacts<'a> {
    values: SmallVec<[Option<&'a str>; 16]>,
    endpoint: Option<Endpoint<'a>>,
    /// The full address in IPv6 space, for matching networks.
    ip: Option<u128>,
    ipv6_prefix: u8,
    /// Wall time: decides which plan of a client holds.
    wall: Time,
    pub(super) overrides: RequestOverrides<'a>,
}

impl<'a> RequestFacts<'a> {
    /// Empty facts.
    #[inline]
    pub(super) fn new(namespace: &CompiledNamespace, wall: Time) -> RequestFacts<'a> {
        RequestFacts {
            values: SmallVec::from_elem(None, namespace.attributes.len()),
            endpoint: None,
            ip: None,
            ipv6_prefix: namespace.ipv6_prefix,
            wall,
            overrides: RequestOverrides::default(),
        }
    }

    /// Reads a request. In place, because facts are large and moving them is expensive.
    #[inline]
    pub(super) fn gather(
        &mut self,
        namespace: &'a CompiledNamespace,
        request: &Request<'a>,
        secret: Secret,
    ) -> Result<(), RequestError> {
        self.identify(namespace, request, secret)?;
        self.read_endpoint(namespace)?;
        self.read_ip()
    }

    /// Reads attributes and looks the client up; leaves endpoint and address unparsed.
    #[inline]
    pub(super) fn identify(
        &mut self,
        namespace: &'a CompiledNamespace,
        request: &Request<'a>,
        secret: Secret,
    ) -> Result<(), RequestError> {
        self.offer(AttrId::NAMESPACE, "namespace", request.namespace)?; // first: custom attributes cannot replace it
        for attribute in Attribute::ALL {
            if let Some(value) = request.get(attribute) {
                self.offer(AttrId::known(attribute), attribute.name(), value)?;
            }
        }
        if request.custom.len() > CUSTOM_MAX {
            return Err(RequestError::too_many_attributes());
        }
        for (name, value) in request.custom {
            if let Some(id) = namespace.attributes.find(name).filter(|_| !directory::is_reserved(name)) {
                self.offer(id, name, value)?;
            }
        }
        self.name_the_client()?;
        if namespace.directories.kinds != 0 {
            self.know(namespace, secret)?;
        }
        match (namespace.plan, &namespace.default_plan) {
            (Some(id), Some(plan)) => self.offer(id, spec::PLAN, plan),
            _ => Ok(()),
        }
    }

    /// Looks the client up. The organisation may come from that lookup, and has its own entry.
    fn know(&mut self, namespace: &'a CompiledNamespace, secret: Secret) -> Result<(), RequestError> {
        let had_org = self.has(AttrId::ORG);
        for identity in self.identities() {
            self.look_up(namespace, identity, secret)?;
        }
        let org = self.sent_or_known(AttrId::ORG).filter(|_| !had_org);
        org.map_or(Ok(()), |org| self.look_up(namespace, Identity::Org(org), secret))
    }

    #[inline]
    fn look_up(
        &mut self,
        namespace: &'a CompiledNamespace,
        identity: Identity<'a>,
        secret: Secret,
    ) -> Result<(), RequestError> {
        if identity.bit() & namespace.directories.kinds == 0 {
            return Ok(());
        }
        let digest = identity.digest(secret, namespace.ipv6_prefix);
        for (number, bound) in namespace.directories.all.iter().enumerate() {
            let Some(entry) = bound.directory.find(digest) else { continue };
            let is_dated = bound.directory.is_dated();
            for (attribute, value) in entry.attributes() {
                if let Some(Some(id)) = bound.attributes.get(usize::from(attribute))
                    && let Some(value) = if is_dated { self.in_force(attribute, value) } else { Some(value) }
                {
                    self.offer(*id, "", value)?;
                }
            }
            self.overrides.add(number, identity.bit(), entry.overrides);
        }
        Ok(())
    }

    /// The value of a client's attribute; of a plan with dates the one that holds now, if any.
    #[inline]
    fn in_force<'v>(&self, attribute: u16, value: &'v str) -> Option<&'v str> {
        match attribute == directory::PLAN && spec::is_dated(value) {
            true => spec::plan_at(value, self.wall.nanos()),
            false => Some(value),
        }
    }

    /// Attributes of the client from the directories, for display; the first directory with an attribute wins.
    pub(super) fn known(&self, namespace: &CompiledNamespace, secret: Secret) -> Vec<(String, String)> {
        let mut known: Vec<(String, String)> = Vec::new();
        for identity in self.identities() {
            let digest = identity.digest(secret, namespace.ipv6_prefix);
            for directory in namespace.directories.all.iter().map(|bound| &bound.directory) {
                for (number, value) in directory.find(digest).into_iter().flat_map(|entry| entry.attributes()) {
                    let name = directory.attribute(number).unwrap_or_default();
                    let value = self.in_force(number, value).filter(|_| known.iter().all(|(other, _)| other != name));
                    known.extend(value.map(|value| (name.to_owned(), value.to_owned())));
                }
            }
        }
        let plan = namespace.default_plan.as_ref().filter(|_| known.iter().all(|(name, _)| name != spec::PLAN));
        // A request may have sent another one.
        let plan = plan.filter(|plan| namespace.plan.is_none_or(|id| self.value(id) == Some(plan)));
        known.extend(plan.map(|plan| (spec::PLAN.to_owned(), plan.clone())));
        known
    }

    /// The override of a rule that is in force, as [`RequestOverrides::of`] finds it, with its identity.
    pub(super) fn held<'n>(
        &self,
        namespace: &'n CompiledNamespace,
        rule: &Rule,
        wall: Time,
        secret: Secret,
    ) -> Option<(Identity<'a>, &'n PackedOverride)> {
        self.identities().find_map(|identity| {
            let digest = identity.digest(secret, namespace.ipv6_prefix);
            let mut directories = namespace.directories.all.iter().zip(&rule.numbers);
            directories.find_map(|(bound, numbers)| {
                Some((identity, numbers.find(bound.directory.find(digest)?.overrides, wall)?))
            })
        })
    }

    /// Grants to these kinds of identities that count for a rule, as [`RequestOverrides::granted`] adds them up, with
    /// their identities.
    pub(super) fn held_grants<'n>(
        &self,
        namespace: &'n CompiledNamespace,
        rule: &Rule,
        terms: GrantTerms,
        secret: Secret,
    ) -> impl Iterator<Item = (Identity<'a>, &'n PackedOverride)> {
        let GrantTerms { kinds, start, wall } = terms;
        let identities = self.identities().filter(move |identity| identity.bit() & kinds != 0);
        identities.flat_map(move |identity| {
            let digest = identity.digest(secret, namespace.ipv6_prefix);
            let directories = namespace.directories.all.iter().zip(&rule.numbers);
            directories.flat_map(move |(bound, numbers)| {
                let all = bound.directory.find(digest).map(|entry| entry.overrides).unwrap_or_default();
                let counts =
                    move |other: &&PackedOverride| numbers.are_named_by(other) && other.granted(start, wall).is_some();
                all.iter().filter(counts).map(move |grant| (identity, grant))
            })
        })
    }

    /// The value of an attribute, if the request has it.
    #[inline]
    pub(super) fn value(&self, id: AttrId) -> Option<&str> {
        match id {
            AttrId::PATH if let Some(endpoint) = &self.endpoint => Some(&endpoint.path),
            AttrId::METHOD if let Some(endpoint) = &self.endpoint => endpoint.method,
            _ => self.values.get(id.index()).copied().flatten(),
        }
    }

    /// The value of an attribute as sent or from a directory, with the lifetime of the request and the rules.
    pub(super) fn sent_or_known(&self, id: AttrId) -> Option<&'a str> {
        self.values.get(id.index()).copied().flatten()
    }

    pub(super) fn has(&self, id: AttrId) -> bool {
        self.value(id).is_some()
    }

    pub(super) fn endpoint(&self) -> Option<(Option<&str>, &str)> {
        self.endpoint.as_ref().map(|endpoint| (endpoint.method, &*endpoint.path))
    }

    /// The address in IPv6 space.
    pub(super) fn ip(&self) -> Option<u128> {
        self.ip
    }

    /// The key of the address: IPv6 by network.
    pub(super) fn ip_key(&self) -> Option<IpKey> {
        self.ip.map(|bits| IpKey::new(bits, self.ipv6_prefix))
    }

    /// The key of the address in the client key (`ip:…`), which is the same for all spellings.
    pub(super) fn client_ip(&self) -> Option<IpKey> {
        match Identity::of(self.values.get(AttrId::CLIENT_KEY.index()).copied().flatten()?) {
            Identity::Ip(text) => parse_ip(text).map(|bits| IpKey::new(bits, self.ipv6_prefix)),
            _ => None,
        }
    }

    /// Sets a value unless it is set: values from the request come first.
    fn offer(&mut self, id: AttrId, name: &str, value: &'a str) -> Result<(), RequestError> {
        let most = if id == AttrId::ENDPOINT { PATH_BYTES_MAX + 64 } else { VALUE_BYTES_MAX };
        if value.len() > most {
            return Err(match id {
                AttrId::ENDPOINT => RequestError::bad_endpoint(PathError::TooLong),
                _ => RequestError::too_long(name, most),
            });
        }
        if let Some(entry @ None) = self.values.get_mut(id.index()) {
            *entry = Some(value);
        }
        Ok(())
    }

    /// `client_key: "user:42"` fills `user_id`, and so on.
    fn name_the_client(&mut self) -> Result<(), RequestError> {
        let Some(Some(client_key)) = self.values.get(AttrId::CLIENT_KEY.index()).copied() else { return Ok(()) };
        match Identity::of(client_key) {
            Identity::Raw(_) => Ok(()),
            Identity::Key(value) => self.offer(AttrId::API_KEY, "client_key", value),
            Identity::User(value) => self.offer(AttrId::USER_ID, "client_key", value),
            Identity::Ip(value) => self.offer(AttrId::IP, "client_key", value),
            Identity::Org(value) => self.offer(AttrId::ORG, "client_key", value),
        }
    }

    /// Identities of the client, the most specific first.
    fn identities(&self) -> impl Iterator<Item = Identity<'a>> + use<'a> {
        let value = |id: AttrId| self.values.get(id.index()).copied().flatten();
        let raw = value(AttrId::CLIENT_KEY).map(Identity::of).filter(|identity| matches!(identity, Identity::Raw(_)));
        let all = [
            raw,
            value(AttrId::API_KEY).map(Identity::Key),
            value(AttrId::USER_ID).map(Identity::User),
            value(AttrId::IP).map(Identity::Ip),
            value(AttrId::ORG).map(Identity::Org),
        ];
        all.into_iter().flatten()
    }

    #[inline]
    fn read_endpoint(&mut self, namespace: &CompiledNamespace) -> Result<(), RequestError> {
        let Some(Some(text)) = self.values.get(AttrId::ENDPOINT.index()).copied() else {
            self.endpoint = self.endpoint_of_parts(namespace);
            return Ok(());
        };
        let endpoint = Endpoint::parse(text, namespace.escaped_slash).map_err(RequestError::bad_endpoint)?;
        self.endpoint = Some(endpoint);
        Ok(())
    }

    /// The endpoint from the custom attributes `method` and `path`, which proxies send. An invalid path is matched as
    /// sent: a custom attribute does not make a request invalid.
    fn endpoint_of_parts(&self, namespace: &CompiledNamespace) -> Option<Endpoint<'a>> {
        let path = self.sent_or_known(AttrId::PATH).filter(|path| path.starts_with('/'))?;
        let path = canonical_path(path, namespace.escaped_slash).ok()?;
        Some(Endpoint { method: self.sent_or_known(AttrId::METHOD), path })
    }

    fn read_ip(&mut self) -> Result<(), RequestError> {
        let Some(Some(text)) = self.values.get(AttrId::IP.index()).copied() else { return Ok(()) };
        let bits = parse_ip(text).ok_or_else(|| {
            RequestError::new("bad_address", "ip", "not an address; write 192.0.2.1 or 2001:db8::1".to_owned())
        })?;
        self.ip = Some(bits);
        Ok(())
    }
}

/// Why a request is invalid. Nothing is charged for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestError {
    /// Stable code, for machines.
    pub code: &'static str,
    /// The field that is wrong.
    pub field: String,
    /// What is wrong, for people. Never contains the value.
    pub message: String,
}

impl RequestError {
    /// Too many requests for one decision.
    pub fn too_many(most: usize) -> RequestError {
        RequestError::new("too_many_requests", "requests", format!("decide at most {most} together"))
    }

    /// Too many buckets for one reservation.
    pub fn reserves_too_much(most: usize) -> RequestError {
        let message =
            format!("more than {most} buckets would be charged, and a receipt holds no more: use fewer rules");
        RequestError::new("reservation_too_large", "costs", message)
    }

    pub(super) fn too_many_attributes() -> RequestError {
        RequestError::new("too_many_attributes", "attributes", format!("use at most {CUSTOM_MAX}"))
    }

    /// Method or path are malformed. Clients recognise that by the code, so that a path that is too long has one of paths.
    pub(super) fn bad_endpoint(error: PathError) -> RequestError {
        RequestError::new(error.code(), "endpoint", error.to_string())
    }

    pub(super) fn too_long(name: &str, most: usize) -> RequestError {
        RequestError::new("value_too_long", name, format!("use at most {most} bytes"))
    }

    /// The limit of the request is invalid.
    pub(super) fn bad_limit(error: &LimitError) -> RequestError {
        RequestError::new("bad_limit", "limit", error.to_string())
    }

    /// No rule of the namespace counts this meter.
    #[cold]
    pub(super) fn unknown_meter(name: &str, known: &BTreeSet<String>) -> RequestError {
        let named: Vec<&str> = known.iter().map(String::as_str).chain([Request::REQUESTS]).collect();
        let message = match nearest(name, named.iter().copied()) {
            Some(meant) => format!("no rule counts this meter; did you mean `{meant}`?"),
            None => format!("no rule counts this meter; the meters are {}", named.join(", ")),
        };
        RequestError::new("unknown_meter", "costs", message)
    }

    /// A rule with `unmetered: reject` needs one of its meters.
    #[cold]
    pub(super) fn missing_meter(rule: &str, meters: &[(String, u64)]) -> RequestError {
        let names: Vec<&str> = meters.iter().map(|(name, _)| name.as_str()).collect();
        let message = format!("the rule `{rule}` needs an amount of {}", names.join(" or "));
        RequestError::new("missing_meter", "costs", message)
    }

    /// Two requests of one decision have charges of one bucket that cannot be joined.
    pub(super) fn mixed(rule: &str) -> RequestError {
        let message = format!("requests decided together ask different things of one bucket of the rule `{rule}`");
        RequestError::new(MIXED, "requests", message)
    }

    /// True if the requests can be decided one by one, but not together.
    pub fn is_mixed(&self) -> bool {
        self.code == MIXED
    }

    fn new(code: &'static str, field: &str, message: String) -> RequestError {
        RequestError { code, field: field.to_owned(), message }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.field, self.message, self.code)
    }
}

impl std::error::Error for RequestError {}
