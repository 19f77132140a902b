//! The cost of an operation.

use std::collections::HashMap;

use apollo_parser::cst::{Field, OperationDefinition, Selection, SelectionSet};
use serde_json::Value;

use super::document::{GraphqlDocument, NESTING_MAX};
use super::factor::Variables;
use super::settings::GraphqlSpec;
use crate::error::{CostError, CostErrorKind};

/// What a query costs, and how many fields it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueryPrice {
    pub(super) cost: u64,
    pub(super) fields: u64,
}

/// Fields of a selection, fragments expanded.
#[derive(Clone, Copy, Debug, Default)]
struct Selected {
    cost: u64,
    fields: u64,
    depth: u64,
}

impl Selected {
    fn join(&mut self, other: Selected) {
        self.cost = self.cost.saturating_add(other.cost);
        self.fields = self.fields.saturating_add(other.fields);
        self.depth = self.depth.max(other.depth);
    }
}

/// Computes the cost of one operation. Each fragment is computed once, however often it is spread.
pub(super) struct Pricing<'a> {
    document: &'a GraphqlDocument,
    variables: Variables<'a>,
    spec: &'a GraphqlSpec,
    /// Fragments that were computed; `None` while that is going on.
    fragments: HashMap<String, Option<Selected>>,
    /// Selections that are being computed, one within the other: bounds the stack.
    nesting: usize,
}

pub(super) fn too_many_fields(spec: &GraphqlSpec) -> CostError {
    CostErrorKind::GraphqlTooManyFields.error(format!("the request has more than {} fields", spec.fields_max))
}

impl<'a> Pricing<'a> {
    pub(super) fn new(
        document: &'a GraphqlDocument,
        operation: &OperationDefinition,
        variables: &'a Value,
        spec: &'a GraphqlSpec,
    ) -> Pricing<'a> {
        let variables = Variables::new(operation, variables);
        Pricing { document, variables, spec, fragments: HashMap::new(), nesting: 0 }
    }

    pub(super) fn price(&mut self, operation: &OperationDefinition) -> Result<QueryPrice, CostError> {
        let selected = self.selection(operation.selection_set())?;
        Ok(QueryPrice { cost: selected.cost, fields: selected.fields })
    }

    fn selection(&mut self, set: Option<SelectionSet>) -> Result<Selected, CostError> {
        let mut selected = Selected::default();
        let Some(set) = set else { return Ok(selected) };
        if self.nesting == NESTING_MAX {
            return Err(self.too_deep());
        }
        self.nesting += 1;
        for selection in set.selections() {
            let part = match selection {
                Selection::Field(field) => self.field(&field)?,
                Selection::InlineFragment(fragment) => self.selection(fragment.selection_set())?,
                Selection::FragmentSpread(spread) => {
                    let name = spread.fragment_name().and_then(|name| name.name());
                    self.fragment(name.map(|name| name.text().to_string()).unwrap_or_default())?
                }
            };
            selected.join(part);
            if selected.depth > self.spec.depth_max {
                return Err(self.too_deep());
            }
            if selected.fields > self.spec.fields_max {
                return Err(too_many_fields(self.spec));
            }
        }
        self.nesting -= 1;
        Ok(selected)
    }

    fn too_deep(&self) -> CostError {
        let message = format!("the query is nested more than {} fields deep", self.spec.depth_max);
        CostErrorKind::GraphqlTooDeep.error(message)
    }

    /// The field itself, and what is below it as often as it has items.
    fn field(&mut self, field: &Field) -> Result<Selected, CostError> {
        let name = field.name().map(|name| name.text().to_string()).unwrap_or_default();
        let below = self.selection(field.selection_set())?;
        let items = self.variables.items(field, self.spec);
        let own = match name.as_str() {
            "__schema" | "__type" => self.spec.introspection.saturating_add(1),
            _ => 1,
        };
        Ok(Selected {
            cost: own.saturating_add(below.cost.saturating_mul(items)),
            fields: below.fields.saturating_add(1),
            depth: below.depth.saturating_add(1),
        })
    }

    fn fragment(&mut self, name: String) -> Result<Selected, CostError> {
        let bad = |message: &'static str| CostErrorKind::BadGraphql.error(message);
        match self.fragments.get(&name) {
            Some(Some(selected)) => return Ok(*selected),
            Some(None) => return Err(bad("a fragment contains itself")),
            None => {}
        }
        let fragment = self.document.fragments.get(&name).ok_or_else(|| bad("a fragment is not defined"))?;
        self.fragments.insert(name.clone(), None);
        let selected = self.selection(fragment.selection_set())?;
        self.fragments.insert(name, Some(selected));
        Ok(selected)
    }
}
