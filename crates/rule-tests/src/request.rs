//! A request from flags, from JSON, or from a step of a test table, as an owned value.

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Map, Value};
use tollgate_core::{Attribute, Request, SlotId};
use tollgate_rules::key::is_attribute;
use tollgate_rules::nearest;
use tollgate_rules::spec::PLAN;

/// An owned request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedRequest {
    /// The namespace; by default, that of the rules file.
    pub namespace: Option<String>,
    /// Attributes by name, without duplicates.
    pub attributes: Vec<(String, String)>,
    /// Units to charge.
    pub cost: u64,
    /// Amounts of further meters, without duplicates.
    pub costs: Vec<(String, u64)>,
    /// Decides without charging.
    pub peek: bool,
    /// Acquires a slot, so that concurrency rules apply.
    pub in_flight: bool,
}

impl Default for OwnedRequest {
    fn default() -> Self {
        OwnedRequest {
            namespace: None,
            attributes: Vec::new(),
            cost: 1,
            costs: Vec::new(),
            peek: false,
            in_flight: false,
        }
    }
}

impl OwnedRequest {
    /// Sets an attribute or the namespace.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if matches!(name, "method" | "path") {
            return Err(format!("`{name}` comes from the endpoint: write endpoint \"GET /path\""));
        }
        if name == "namespace" {
            self.namespace = Some(value.to_owned());
            return Ok(());
        }
        if !is_attribute(name) {
            return Err(format!(
                "`{name}` is not the name of an attribute: a lower-case letter, then up to 63 of a-z, 0-9, _, ., -"
            ));
        }
        self.attributes.retain(|(other, _)| other != name);
        self.attributes.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Sets the amount of a meter; that of `requests` is the cost.
    pub fn set_cost(&mut self, meter: &str, amount: u64) -> Result<(), String> {
        if meter == Request::REQUESTS {
            self.cost = amount;
            return Ok(());
        }
        if !is_attribute(meter) {
            return Err(format!(
                "`{meter}` is not the name of a meter: a lower-case letter, then up to 63 of a-z, 0-9, _, ., -"
            ));
        }
        self.costs.retain(|(other, _)| other != meter);
        self.costs.push((meter.to_owned(), amount));
        Ok(())
    }

    /// Parses a request in the format of the HTTP API.
    pub fn from_json(text: &str) -> Result<OwnedRequest, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        let Value::Object(fields) = value else {
            return Err("a request is a JSON object such as {\"client_key\":\"user:42\"}".to_owned());
        };
        let mut request = OwnedRequest::default();
        for (name, value) in &fields {
            request.set_json(name, value)?;
        }
        Ok(request)
    }

    fn set_json(&mut self, name: &str, value: &Value) -> Result<(), String> {
        match (name, value) {
            ("cost", value) => {
                self.cost = value.as_u64().ok_or("`cost` should be a whole number from 0")?;
            }
            ("costs", Value::Object(costs)) => {
                for (meter, amount) in costs {
                    let wanted = || format!("`costs.{meter}` should be a whole number from 0");
                    self.set_cost(meter, amount.as_u64().ok_or_else(wanted)?)?;
                }
            }
            ("costs", _) => return Err("`costs` should be an object".to_owned()),
            ("peek", Value::Bool(peek)) => self.peek = *peek,
            ("in_flight", Value::Bool(in_flight)) => self.in_flight = *in_flight,
            ("attributes", Value::Object(custom)) => {
                for (name, value) in custom {
                    let value = value.as_str().ok_or_else(|| format!("`attributes.{name}` should be text"))?;
                    self.set(name, value)?;
                }
            }
            ("attributes", _) => return Err("`attributes` should be an object".to_owned()),
            (name, Value::String(text)) if is_request_field(name) => self.set(name, text)?,
            (name, _) if is_request_field(name) => return Err(format!("`{name}` should be text")),
            ("peek" | "in_flight", _) => return Err(format!("`{name}` should be true or false")),
            _ => {
                let known = request_fields().chain(["cost", "costs", "peek", "in_flight", "attributes"]);
                let hint = match nearest(name, known) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "put attributes of your own under `attributes`".to_owned(),
                };
                return Err(format!("unknown field `{name}`; {hint}"));
            }
        }
        Ok(())
    }

    /// The lists that [`OwnedRequest::to_request`] borrows.
    pub fn lists(&self) -> OwnedRequestLists<'_> {
        let custom = self.attributes.iter().filter(|(name, _)| Attribute::from_name(name).is_none());
        OwnedRequestLists {
            custom: custom.map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            costs: self.costs.iter().map(|(meter, amount)| (meter.as_str(), *amount)).collect(),
        }
    }

    /// The request in the form that the engine takes.
    pub fn to_request<'a>(
        &'a self,
        namespace: &'a str,
        lists: &'a OwnedRequestLists<'a>,
        slot: Option<SlotId>,
    ) -> Request<'a> {
        let mut request = Request::new().in_namespace(self.namespace.as_deref().unwrap_or(namespace)).cost(self.cost);
        for (name, value) in &self.attributes {
            if let Some(attribute) = Attribute::from_name(name) {
                request.set(attribute, value);
            }
        }
        (request.custom, request.costs, request.slot) = (&lists.custom, &lists.costs, slot);
        if self.peek { request.peek() } else { request }
    }

    /// The request in the format of the HTTP API.
    pub fn to_json(&self) -> Result<Value> {
        if self.in_flight {
            bail!("--in-flight needs --rules: a check holds no slot on a server, /v1/slots/acquire does");
        }
        let mut fields = Map::new();
        let known = self.attributes.iter().filter(|(name, _)| Attribute::from_name(name).is_some());
        fields.extend(known.map(|(name, value)| (name.clone(), value.as_str().into())));
        fields.extend(self.namespace.iter().map(|name| ("namespace".to_owned(), name.as_str().into())));
        fields.insert("cost".to_owned(), self.cost.into());
        let costs: Map<String, Value> =
            self.costs.iter().map(|(meter, amount)| (meter.clone(), (*amount).into())).collect();
        if !costs.is_empty() {
            fields.insert("costs".to_owned(), costs.into());
        }
        if self.peek {
            fields.insert("peek".to_owned(), true.into());
        }
        let custom: Map<String, Value> =
            self.lists().custom.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        if !custom.is_empty() {
            fields.insert("attributes".to_owned(), custom.into());
        }
        Ok(fields.into())
    }

    /// One line: `api_key=abc endpoint="GET /x" cost=2`.
    pub fn summary(&self) -> String {
        let quoted = |value: &str| match value.contains([' ', '"']) || value.is_empty() {
            true => format!("{value:?}"),
            false => value.to_owned(),
        };
        let mut words: Vec<String> =
            self.attributes.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
        words.extend(self.namespace.iter().map(|name| format!("namespace={}", quoted(name))));
        words.push(format!("cost={}", self.cost));
        words.extend(self.costs.iter().map(|(meter, amount)| format!("{meter}={amount}")));
        words.extend(self.in_flight.then(|| "in_flight".to_owned()));
        words.extend(self.peek.then(|| "peek".to_owned()));
        words.join(" ")
    }
}

/// The lists of a request in the form that the engine takes.
#[derive(Debug)]
pub struct OwnedRequestLists<'a> {
    custom: Vec<(&'a str, &'a str)>,
    costs: Vec<(&'a str, u64)>,
}

/// The built-in fields of a request.
fn request_fields() -> impl Iterator<Item = &'static str> {
    Attribute::ALL.into_iter().map(Attribute::name).chain(["namespace"])
}

fn is_request_field(name: &str) -> bool {
    request_fields().any(|field| field == name)
}

/// The attributes of a request as flags.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Request")]
pub struct AttributeArgs {
    /// The client: user:42, key:abc, ip:192.0.2.1, org:acme, or any text
    #[arg(long, visible_alias = "client", value_name = "KEY")]
    client_key: Option<String>,
    /// The API key
    #[arg(long, value_name = "KEY")]
    api_key: Option<String>,
    /// The user
    #[arg(long, value_name = "ID")]
    user_id: Option<String>,
    /// The IP address
    #[arg(long, value_name = "ADDRESS")]
    ip: Option<String>,
    /// The organisation
    #[arg(long, value_name = "NAME")]
    org: Option<String>,
    /// The tier, such as free or paid
    #[arg(long, value_name = "NAME")]
    tier: Option<String>,
    /// The plan, instead of the client's own
    #[arg(long, value_name = "PLAN")]
    plan: Option<String>,
    /// "METHOD /path", or just /path
    #[arg(long, value_name = "ENDPOINT")]
    endpoint: Option<String>,
    /// A custom attribute; may be repeated
    #[arg(long = "attr", value_name = "NAME=VALUE", value_parser = name_and_value)]
    custom: Vec<(String, String)>,
}

/// The request as flags.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Request")]
pub struct RequestArgs {
    #[command(flatten)]
    attributes: AttributeArgs,
    /// Units to charge, 0 only reads [default: 1]; or the amount of a meter, such as output_tokens=500; may be repeated
    #[arg(long = "cost", value_name = "[METER=]N", value_parser = meter_and_amount)]
    costs: Vec<(String, u64)>,
    /// Decide without charging
    #[arg(long)]
    peek: bool,
    /// Acquire a slot, so that concurrency rules apply
    #[arg(long)]
    in_flight: bool,
    /// The namespace of the rules [default: `default`; with --rules, the namespace of the file]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, such as region=eu")?;
    OwnedRequest::default().set(name, value)?;
    Ok((name.to_owned(), value.to_owned()))
}

fn meter_and_amount(text: &str) -> Result<(String, u64), String> {
    let (meter, amount) = text.split_once('=').unwrap_or((Request::REQUESTS, text));
    let amount = amount.parse().map_err(|_| "write a whole number, or METER=N such as output_tokens=500")?;
    OwnedRequest::default().set_cost(meter, amount)?;
    Ok((meter.to_owned(), amount))
}

impl AttributeArgs {
    /// True if no flag was given.
    pub fn is_empty(&self) -> bool {
        self.custom.is_empty() && self.plan.is_none() && self.known().into_iter().all(|(_, value)| value.is_none())
    }

    /// Sets the given attributes on a request.
    pub fn apply_to(&self, mut request: OwnedRequest) -> OwnedRequest {
        let known = self.known().into_iter().filter_map(|(attribute, value)| Some((attribute.name(), value?)));
        let custom = self.custom.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let plan = self.plan.as_deref().map(|plan| (PLAN, plan));
        for (name, value) in known.chain(plan).chain(custom) {
            request.attributes.retain(|(other, _)| other != name);
            request.attributes.push((name.to_owned(), value.to_owned()));
        }
        request
    }

    fn known(&self) -> [(Attribute, Option<&str>); 7] {
        [
            (Attribute::ClientKey, self.client_key.as_deref()),
            (Attribute::ApiKey, self.api_key.as_deref()),
            (Attribute::UserId, self.user_id.as_deref()),
            (Attribute::Ip, self.ip.as_deref()),
            (Attribute::Org, self.org.as_deref()),
            (Attribute::Tier, self.tier.as_deref()),
            (Attribute::Endpoint, self.endpoint.as_deref()),
        ]
    }
}

impl RequestArgs {
    /// True if no flag was given.
    pub fn is_empty(&self) -> bool {
        let RequestArgs { attributes, costs, peek, in_flight, namespace } = self;
        attributes.is_empty() && costs.is_empty() && !peek && !in_flight && namespace.is_none()
    }

    /// Sets the given fields on a request.
    pub fn apply_to(&self, request: OwnedRequest) -> OwnedRequest {
        let mut request = self.attributes.apply_to(request);
        for (meter, amount) in &self.costs {
            // Checked when the flag was read.
            let _ = request.set_cost(meter, *amount);
        }
        OwnedRequest {
            namespace: self.namespace.clone().or(request.namespace),
            cost: request.cost,
            costs: request.costs,
            peek: self.peek || request.peek,
            in_flight: self.in_flight || request.in_flight,
            attributes: request.attributes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_request_of_the_http_api() {
        let text = r#"{"client_key":"user:42","endpoint":"POST /x","cost":3,"attributes":{"region":"eu"}}"#;
        let request = OwnedRequest::from_json(text).unwrap();
        assert_eq!(request.summary(), "region=eu client_key=user:42 endpoint=\"POST /x\" cost=3");
        assert_eq!(request.lists().custom, [("region", "eu")]);
    }

    #[test]
    fn writes_what_it_reads() {
        let request = OwnedRequest {
            namespace: Some("shop".to_owned()),
            attributes: [("region", "eu"), ("user_id", "42")].map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec(),
            cost: 3,
            costs: vec![("output_tokens".to_owned(), 500)],
            peek: true,
            in_flight: false,
        };
        let text = request.to_json().unwrap().to_string();
        assert_eq!(OwnedRequest::from_json(&text), Ok(request));
        let held = OwnedRequest { in_flight: true, ..OwnedRequest::default() };
        assert!(held.to_json().unwrap_err().to_string().contains("/v1/slots/acquire"));
    }

    #[test]
    fn rejects_unknown_fields_and_types() {
        let cases = [
            ("[]", "a request is a JSON object"),
            ("{\"cost\":-1}", "`cost` should be a whole number"),
            ("{\"cost\":1.5}", "`cost` should be a whole number"),
            ("{\"teir\":\"free\"}", "did you mean `tier`?"),
            ("{\"region\":\"eu\"}", "under `attributes`"),
            ("{\"tier\":1}", "`tier` should be text"),
            ("{\"attributes\":{\"a\":1}}", "`attributes.a` should be text"),
            ("{\"attributes\":{\"path\":\"/\"}}", "comes from the endpoint"),
            ("{", "not JSON"),
        ];
        for (text, message) in cases {
            let error = OwnedRequest::from_json(text).expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn flags_win_over_json() {
        let json = OwnedRequest::from_json(r#"{"tier":"free","cost":3}"#).unwrap();
        let named = |text: &str| Some(text.to_owned());
        let attributes = AttributeArgs { tier: named("paid"), plan: named("pro"), ..AttributeArgs::default() };
        let args = RequestArgs { attributes, ..RequestArgs::default() };
        assert_eq!(args.apply_to(json).summary(), "tier=paid plan=pro cost=3");
    }
}
