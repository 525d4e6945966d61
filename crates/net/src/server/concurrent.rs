//! Handles requests that arrive at the same time, in an order that the seed decides.

use super::world::World;
use conformant_base::http::{Request, Response};
use sha2::{Digest, Sha256};

impl World {
    /// Handles requests that arrive at the same time; `responses[i]` answers `requests[i]`.
    ///
    /// - Each request is handled whole, in an order that follows from the sandbox's seed and the bytes of the
    ///   requests: a fork of the sandbox draws the same order.
    /// - All callbacks are delivered before it returns.
    pub fn handle_concurrently(&self, requests: &[Request]) -> Vec<Response> {
        let mut answers: Vec<_> = requests.iter().map(|_| None).collect();
        for index in order(self.seed(), requests) {
            answers[index] = Some(self.answer(&requests[index]));
        }
        let answered = answers.into_iter().flatten();
        answered.map(|one| self.settle(one).response).collect()
    }

    fn seed(&self) -> u64 {
        self.state().seed
    }
}

/// An order of the requests, as indexes.
fn order(seed: u64, requests: &[Request]) -> Vec<usize> {
    let mut all = Sha256::new().chain_update(seed.to_be_bytes());
    for request in requests {
        all.update(&request.method);
        all.update(&request.target);
        all.update(&request.body);
    }
    let place = |index: &usize| {
        let digest = all.clone().chain_update(index.to_be_bytes()).finalize();
        <[u8; 32]>::from(digest)
    };
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_cached_key(place);
    order
}

#[cfg(test)]
mod tests {
    use super::order;
    use conformant_base::http::Request;
    use std::collections::BTreeSet;

    fn requests(name: &str) -> Vec<Request> {
        let request = |n: usize| Request::new("POST", format!("/{name}/{n}"));
        (0..3).map(request).collect()
    }

    #[test]
    fn the_order_follows_from_seed_and_requests() {
        assert_eq!(order(1, &requests("a")), order(1, &requests("a")));
        let of_seeds: BTreeSet<_> = (0..20).map(|seed| order(seed, &requests("a"))).collect();
        assert!(of_seeds.len() > 2, "{of_seeds:?}");
        let names = (0..20).map(|n| order(1, &requests(&format!("{n}"))));
        assert!(names.collect::<BTreeSet<_>>().len() > 2);
    }
}
