//! Tests of `parallel`.

use conformant_base::parallel::parallel_map;

#[test]
fn results_are_in_order_whatever_the_number_of_threads() {
    let items: Vec<usize> = (0..1000).collect();
    let twice: Vec<usize> = items.iter().map(|n| n * 2).collect();
    for jobs in [0, 1, 2, 7, 2000] {
        assert_eq!(parallel_map(&items, jobs, |n| n * 2), twice, "{jobs}");
    }
    assert!(parallel_map(&[0; 0], 3, |n: &u8| *n).is_empty());
}
