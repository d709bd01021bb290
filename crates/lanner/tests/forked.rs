//! Clients and servers belong to the process that has them; a child that `fork` made opens its own.

use std::path::Path;
use std::sync::Arc;

use lanner::{Client, ClientConfig, Error, ErrorKind, Model, Server, ServerConfig};
use lanner_testkit::{alone, in_a_fork};

fn tiny() -> Arc<Model> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tests/data/versions/0.2.0/tiny.lanner");
    Arc::new(Model::load(&path).unwrap())
}

fn is_misuse<T>(result: Result<T, Error>) -> bool {
    let is_advice =
        |error: &Error| error.what.contains("a copy that fork made") && error.fix.contains("docs/how-to/");
    result.is_err_and(|error| error.kind == ErrorKind::Misuse && is_advice(&error))
}

#[test]
fn a_child_predicts_with_a_client_of_its_own_alone() {
    alone(|| {
        let (model, state) = (tiny(), std::env::temp_dir());
        let server =
            Server::new(vec![("tiny".to_owned(), Arc::clone(&model))], ServerConfig::plaintext(state))
                .unwrap();
        server.start().unwrap();
        let config = ClientConfig { timeout: Some(15.0), ..ClientConfig::plaintext(server.address()) };
        let length = model.manifest().input.shape.iter().product();
        let [x, other] = [0.25, 0.75].map(|value| vec![value; length]);
        let label = |client: &mut Client, x: &[f32]| client.predict(x).unwrap().label;
        let mut client = Client::connect(&config).unwrap();
        client.prepare(2).unwrap();
        let expected = [&x, &other].map(|x| label(&mut client, x));
        client.prepare(2).unwrap();
        let before = server.stats();
        let mut inherited = Some(client);
        for _ in 0..2 {
            assert!(in_a_fork(|| {
                let mut client = inherited.take().unwrap();
                is_misuse(client.predict(&x))
                    && is_misuse(client.prepare(1))
                    && is_misuse(client.keep(1))
                    && is_misuse(client.stock())
                    && is_misuse(client.close())
                    && is_misuse(server.stop(0.0))
                    && is_misuse(server.start())
            }));
        }
        // Its own, while the pool of threads that the parent has used is not there.
        assert!(in_a_fork(|| {
            let mut own = Client::connect(&config).unwrap();
            let told = [&x, &other].map(|x| label(&mut own, x));
            own.close().is_ok() && told == expected
        }));
        let mut client = inherited.unwrap();
        assert_eq!([&x, &other].map(|x| label(&mut client, x)), expected);
        client.close().unwrap();
        server.stop(5.0).unwrap();
        let after = server.stats();
        assert_eq!(after.failures, before.failures, "no session ended otherwise than it should");
    });
}
