//! Two machines, each in a network of its own, and a server between them: the real Claude Code on one and
//! the real Codex on the other find each other, talk, and wake each other. Only their models are played.

#[path = "clients/pairs.rs"]
mod pairs;

use test_support::{
    Client, Ladder, Machine, Model, NatsServer, Seat, Transcript, agents, isolated, session_of, unread,
};

use pairs::Pair;

#[test]
fn claude_code_on_one_machine_and_codex_on_another_talk_and_wake_each_other() {
    isolated(|| {
        let server = NatsServer::for_machines();
        let places = [(1, Client::ClaudeCode), (2, Client::Codex)].map(|(number, client)| {
            let machine = Machine::new(number, env!("CARGO_BIN_EXE_relay-mesh"));
            machine.stage.configure(&format!("store = \"nats://{}\"\n", machine.at(server.port())));
            let model = machine.within(|| {
                client.install(&machine.stage);
                Model::start(pairs::part(client))
            });
            Place { machine, client, model }
        });
        let seats = places.each_ref().map(Place::open);
        for (place, seat) in places.iter().zip(&seats) {
            seat.terminal.type_line(&format!("Join the mesh as {}.", place.client.name()));
            seat.settles(&place.model);
            assert!(session_of(&place.machine.stage, place.client.name()).is_some(), "it is bound to its session");
        }
        for place in &places {
            assert_eq!(agents(&place.machine.stage), ["claude-code", "codex"], "each machine knows both");
        }
        let mut rows = Vec::new();
        for (asker, asked) in [(0, 1), (1, 0)] {
            let pair = Pair { asker: places[asker].client, asked: places[asked].client };
            seats[asker].terminal.type_line(&pair.order());
            let woken = places[asked].model.wait_for_news(&pair.question());
            places[asker].model.wait_for_news(&pair.answer());
            seats[asker].settles(&places[asker].model);
            seats[asked].settles(&places[asked].model);
            let id = pair.id_of_the_question(&woken);
            let ladder = Ladder::up_to(&places[asker].machine.stage, &id, "acknowledged");
            let told = places[asked].model.times_told(&pair.question());
            let answered = places[asker].model.times_told(&pair.answer());
            rows.push(pair.row(&ladder, told + answered - 2));
            assert_eq!((told, answered), (1, 1), "{pair:?}: question and answer are shown once each");
        }
        let lost: Vec<String> =
            places.iter().flat_map(|place| unread(&place.machine.stage, place.client.name())).collect();
        let mut transcript = Transcript::new();
        transcript.step(
            "two machines",
            "each client asks the other one, which is idle",
            &pairs::table(&rows, lost.len()),
        );
        transcript.show();
        assert!(lost.is_empty(), "{lost:?}");
        for place in &places {
            let kept = place.machine.stage.data.join("agents");
            assert!(!kept.exists(), "what is shared lies on the server alone: {}", kept.display());
        }
    });
}

/// A machine and whoever works there.
struct Place {
    machine: Machine,
    client: Client,
    model: Model,
}

impl Place {
    fn open(&self) -> Seat<'_> {
        self.machine.within(|| self.client.open(&self.machine.stage, &self.model))
    }
}
