//! Resource types of operations, resolved once all of a service's operations and resource types are known.

use crate::model::{Action, Kind, Operation, Service};
use conformant_base::sorted::SortedMap;

/// Assigns the resource type of each operation: the one that it returns or lists. An operation with an
/// empty response gets the type that another one returns at the same address.
pub(crate) fn find_resources(service: &mut Service, kinds: &SortedMap<String, Kind>) {
    let shown = |operation: &Operation| -> Option<String> {
        let kind = kinds.get(operation.response.as_ref()?)?;
        let kind = match &kind.page_of {
            Some((item, _)) => kinds.get(item)?,
            None => kind,
        };
        kind.annotations
            .identity
            .is_some()
            .then(|| kind.name.clone())
    };
    let by_path: SortedMap<String, String> = service
        .operations
        .values()
        .filter(|operation| operation.does == Action::Shows)
        .filter_map(|operation| Some((operation.path.clone(), shown(operation)?)))
        .collect();
    for operation in service.operations.values_mut() {
        let at_path = || by_path.get(&operation.path).cloned();
        // `/orders/{id}/cancel` changes what `/orders/{id}` shows.
        let above = || {
            let is_action = operation.does == Action::Changes && !operation.path.ends_with('}');
            let (above, _) = operation.path.rsplit_once('/').filter(|_| is_action)?;
            by_path.get(above).cloned()
        };
        operation.resource = shown(operation).or_else(at_path).or_else(above);
    }
}
