//! A map in one vector does what a tree does.

use conformant_base::sorted::SortedMap;
use proptest::prelude::*;
use std::collections::BTreeMap;

proptest! {
    #[test]
    fn a_sorted_map_is_what_a_b_tree_map_is(
        steps in proptest::collection::vec((0_u8..4, 0_u8..12, any::<u8>()), 0..60),
    ) {
        let (mut sorted, mut tree) = (SortedMap::new(), BTreeMap::new());
        for (step, key, value) in steps {
            match step {
                0 => prop_assert_eq!(sorted.insert(key, value), tree.insert(key, value)),
                1 => prop_assert_eq!(sorted.remove(&key), tree.remove(&key)),
                2 => {
                    let change = |known: &mut u8| *known = known.wrapping_add(value);
                    let sorted = *sorted.entry(key).and_modify(change).or_insert(value);
                    prop_assert_eq!(sorted, *tree.entry(key).and_modify(change).or_insert(value));
                }
                _ => {
                    sorted.retain(|known, _| *known != key);
                    tree.retain(|known, _| *known != key);
                }
            }
            prop_assert_eq!(sorted.get(&key), tree.get(&key));
            prop_assert!(sorted.iter().eq(tree.iter()));
        }
        let json = serde_json::to_string(&sorted).expect("keys are numbers");
        prop_assert_eq!(&json, &serde_json::to_string(&tree).expect("keys are numbers"));
        let read: SortedMap<u8, u8> = serde_json::from_str(&json).expect("a map");
        prop_assert_eq!(&read, &sorted);
        let backwards: SortedMap<u8, u8> = tree.into_iter().rev().collect();
        prop_assert_eq!(backwards, sorted);
    }
}

#[test]
fn a_large_map_in_reverse_order_is_sorted_once() {
    let entries = || (0..200_000_u32).rev().map(|key| (key, [key; 64]));
    let map: SortedMap<u32, [u32; 64]> = entries().chain([(7, [0; 64])]).collect();
    assert_eq!((map.len(), map[&7]), (200_000, [0; 64]));
    assert!(map.keys().is_sorted());
}
