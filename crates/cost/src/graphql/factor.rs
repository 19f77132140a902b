//! How many items a field asks for.

use std::collections::HashMap;

use apollo_parser::cst::{CstNode, Field, OperationDefinition, Value as GraphqlValue};
use serde_json::Value;

use super::settings::GraphqlSpec;
use crate::json::amount;

/// The variables of an operation: those that were sent, and defaults.
pub(super) struct Variables<'a> {
    sent: &'a Value,
    defaults: HashMap<String, GraphqlValue>,
}

impl<'a> Variables<'a> {
    pub(super) fn new(operation: &OperationDefinition, sent: &'a Value) -> Variables<'a> {
        let definitions = operation.variable_definitions().into_iter();
        let definitions = definitions.flat_map(|all| all.variable_definitions());
        let defaults = definitions.filter_map(|definition| {
            let name = definition.variable()?.name()?.text().to_string();
            Some((name, definition.default_value()?.value()?))
        });
        Variables { sent, defaults: defaults.collect() }
    }

    /// The items below a field: the largest of its list arguments, also within input objects; 1 if it has none. At least 1:
    /// servers take a list of 0 items for one of the length that they like.
    pub(super) fn items(&self, field: &Field, spec: &GraphqlSpec) -> u64 {
        let arguments = field.arguments().into_iter().flat_map(|all| all.arguments());
        let items = arguments.filter_map(|argument| {
            let name = argument.name().map(|name| name.text().to_string()).unwrap_or_default();
            self.argument(&name, argument.value()?, spec)
        });
        items.max().unwrap_or(1).max(1)
    }

    /// The items that an argument asks for; `None` if it says nothing about items.
    fn argument(&self, name: &str, value: GraphqlValue, spec: &GraphqlSpec) -> Option<u64> {
        if is_list_argument(name, spec) {
            return Some(self.number(&value, spec));
        }
        match value {
            // The parser bounds the nesting.
            GraphqlValue::ObjectValue(object) => {
                let fields = object.object_fields().filter_map(|field| {
                    let name = field.name().map(|name| name.text().to_string()).unwrap_or_default();
                    self.argument(&name, field.value()?, spec)
                });
                fields.max()
            }
            GraphqlValue::ListValue(list) => list.values().filter_map(|item| self.argument("", item, spec)).max(),
            GraphqlValue::Variable(variable) => {
                let name = variable.name()?.text().to_string();
                match self.sent.get(&name) {
                    Some(value) => items_within(value, spec),
                    // Defaults hold no variables, so this ends.
                    None => self.argument("", self.defaults.get(&name)?.clone(), spec),
                }
            }
            _ => None,
        }
    }

    fn number(&self, value: &GraphqlValue, spec: &GraphqlSpec) -> u64 {
        let literal = |value: &GraphqlValue| match value {
            GraphqlValue::IntValue(number) => amount(number.syntax().first_token()?.text()),
            _ => None,
        };
        let number = match value {
            GraphqlValue::Variable(variable) => variable.name().and_then(|name| {
                let name = name.text().to_string();
                match self.sent.get(&name) {
                    Some(sent) => json_number(sent),
                    None => self.defaults.get(&name).and_then(literal),
                }
            }),
            other => literal(other),
        };
        number.unwrap_or(spec.list_factor)
    }
}

fn is_list_argument(name: &str, spec: &GraphqlSpec) -> bool {
    spec.list_arguments.iter().any(|argument| argument == name)
}

fn json_number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => amount(&number.to_string()),
        // Some servers read numbers from text.
        Value::String(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => amount(text),
        _ => None,
    }
}

/// The largest list argument within the value of a variable. The JSON scanner has bounded the nesting.
fn items_within(value: &Value, spec: &GraphqlSpec) -> Option<u64> {
    match value {
        Value::Object(fields) => {
            let items = fields.iter().filter_map(|(name, value)| match is_list_argument(name, spec) {
                true => Some(json_number(value).unwrap_or(spec.list_factor)),
                false => items_within(value, spec),
            });
            items.max()
        }
        Value::Array(items) => items.iter().filter_map(|item| items_within(item, spec)).max(),
        _ => None,
    }
}
