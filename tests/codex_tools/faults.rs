//! What is left of a call when its time is up, when a process is killed in the middle of it, and when many come at once.

use serde_json::{Value, json};
use test_support::{Behaviour, ModelAnswer, Program, Spawning, StdioClient, Victim, isolated, wait_or_show};

use super::{allowed, called, echo, joined, last_request, row, rows, scene, text, told};

/// Writes a call and does not wait for its answer.
fn begin(client: &mut StdioClient, id: u64, tool: &str, arguments: &Value) {
    let call =
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    client.write(&call.to_string());
}

/// The answer to a call that was begun.
fn answer(client: &mut StdioClient, id: u64) -> Value {
    loop {
        let answer = client.read().expect("an answer");
        if answer["id"] == id {
            return answer["result"].clone();
        }
    }
}

/// Waits until the model is asked once more than it was.
fn asked_again(scene: &Spawning, before: usize) {
    wait_or_show("the turn runs", || (scene.model.heard().len() > before).then_some(()), || scene.told());
}

#[test]
fn f11_f14_n_a_turn_ends_in_time_and_a_dead_child_is_told() {
    isolated(|| {
        let scene = scene(echo().talk("Talk for long", "I begin and").talk("Talk again", "I begin and"));
        allowed(&scene, "lead");
        let mut lead = joined(&scene, "lead", &["--timeout", "10s"]);
        let late = called(&mut lead, "codex", &json!({"prompt": "Talk for long"}));
        let late_told = &late["structuredContent"];
        assert_eq!(late_told["status"], "timed-out", "{late} {}", scene.told());
        assert!(late_told["content"].as_str().is_some_and(|told| told.contains("the time of 10 s was up")), "{late}");
        let thread = late_told["threadId"].as_str().expect("a thread").to_owned();
        let reply = |prompt: &str| json!({"threadId": thread, "prompt": prompt});
        assert_eq!(told(&scene, &mut lead, "codex-reply", &reply("Hello")).1, "Said: Hello", "it is usable");

        // Its program dies while nobody waits: the next call says how, once, and nothing is started by itself.
        let (_, program) = scene.running().expect("it runs");
        Program::new("kill").args(["-KILL", &program.to_string()]).succeed();
        wait_or_show("the end is noted", || scene.ours().is_empty().then_some(()), || scene.told());
        let dead = called(&mut lead, "codex-reply", &reply("Hello?"));
        assert_eq!(dead["isError"], true, "{dead}");
        assert!(text(&dead).contains("signal 9"), "{dead}");
        assert!(scene.ours().iter().all(|line| !line.contains("app-server")), "no restart: {:?}", scene.ours());
        assert_eq!(told(&scene, &mut lead, "codex-reply", &reply("Hello!")).1, "Said: Hello!");

        // A call that is cancelled stops its turn.
        let slow = scene.model.heard().len();
        begin(&mut lead, 99, "codex-reply", &reply("Talk again"));
        asked_again(&scene, slow);
        lead.write(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}).to_string(),
        );
        wait_or_show("it has stopped", || (row(&scene, &thread)["status"] == "idle").then_some(()), || scene.told());
        assert_eq!(told(&scene, &mut lead, "codex-reply", &reply("Bye")).1, "Said: Bye");
        assert_eq!(lead.close(), Some(0));
        let log = std::fs::read_to_string(scene.stage.folder.join("lead.log")).expect("its log");
        assert!(
            log.lines().any(|line| line.starts_with("warning: ") && line.contains("the time of a turn is up")),
            "{log}"
        );
        scene.nothing_is_left();
    });
}

#[test]
fn f14_a_question_to_the_user_stops_the_clock_of_its_turn() {
    isolated(|| {
        let made = tempfile::tempdir().expect("a folder");
        let file = made.path().join("made");
        let command = format!("echo made > {}", file.display());
        let escalates = json!({"cmd": command, "sandbox_permissions": "require_escalated", "justification": "why"});
        let scene = scene(echo().answer_with("Make it", move |_| ModelAnswer::Call {
            tool: "exec_command".to_owned(),
            input: escalates.clone(),
        }));
        allowed(&scene, "lead");
        let mut lead = joined(&scene, "lead", &["--timeout", "10s"]);
        begin(&mut lead, 50, "codex", &json!({"prompt": "Make it", "approval-policy": "on-request"}));
        let question = || scene.ok(&["asks"])["asks"].as_array().and_then(|asks| asks.first().cloned());
        let ask = wait_or_show("a question", question, || scene.told());
        // More than the time of the turn goes by, in which another question finds nobody.
        let late = scene.relay(&["ask", "Anybody?", "--wait", "--timeout", "12s"]);
        assert_eq!(late.code, Some(7), "{late:?}");
        let answered = scene.relay(&["asks", "answer", ask["id"].as_str().expect("an id"), "allow"]);
        assert_eq!(answered.code, Some(0), "{answered:?}");
        let told = answer(&mut lead, 50);
        assert_eq!(told["structuredContent"]["status"], Value::Null, "completed: {told}\n{}", scene.told());
        assert!(file.exists(), "{told}");
        assert_eq!(lead.close(), Some(0));
        scene.nothing_is_left();
    });
}

#[test]
fn n_whoever_is_killed_in_the_middle_of_a_call_the_thread_goes_on() {
    isolated(|| {
        let scene = scene(echo());
        allowed(&scene, "lead");
        let mut lead = joined(&scene, "lead", &[]);
        let (thread, _) = told(&scene, &mut lead, "codex", &json!({"prompt": "The word is plum"}));
        let reply = |prompt: &str| json!({"threadId": thread, "prompt": prompt});
        for (call, victim) in [(60, Victim::Harness), (61, Victim::Host), (62, Victim::HostAndGuard)] {
            let before = scene.model.heard().len();
            scene.model.behaves(Some(Behaviour::Answers(ModelAnswer::Talk("I begin".to_owned()))));
            begin(&mut lead, call, "codex-reply", &reply(&format!("Call {call}")));
            asked_again(&scene, before);
            scene.kill(victim);
            scene.model.behaves(None);
            // It is told what became of the call, and the thread goes on.
            let said = text(&answer(&mut lead, call));
            let why = match victim {
                Victim::Harness => "did not answer: its program was ended by signal 9. Its thread is",
                Victim::Host | Victim::HostAndGuard => {
                    "did not answer: its turn was cut off by the end of its program. Its thread is"
                }
            };
            assert!(said.contains(why), "{victim:?}: {said}\n{}", scene.told());
            let after = told(&scene, &mut lead, "codex-reply", &reply("Which word?"));
            assert_eq!(after, (thread.clone(), "Said: Which word?".to_owned()), "{victim:?}: {}", scene.told());
            assert!(last_request(&scene.model).contains("The word is plum"), "{victim:?}");
        }
        // Its client is gone in the middle of a call: the server ends its threads and itself.
        let before = scene.model.heard().len();
        scene.model.behaves(Some(Behaviour::Answers(ModelAnswer::Talk("I begin".to_owned()))));
        begin(&mut lead, 63, "codex-reply", &reply("Call 63"));
        asked_again(&scene, before);
        assert_eq!(lead.close(), Some(0));
        scene.nothing_is_left();
        assert_eq!(row(&scene, &thread)["status"], "interrupted", "{}", scene.told());
    });
}

#[test]
fn n_sixteen_threads_work_at_once() {
    isolated(|| {
        let scene = scene(echo());
        allowed(&scene, "lead");
        let settings = scene.stage.home.join(".config/relay-mesh/spawn.toml");
        let consents = std::fs::read_to_string(&settings).expect("it is there");
        std::fs::write(&settings, format!("each = 16\n{consents}")).expect("written");
        let mut lead = joined(&scene, "lead", &[]);
        for call in 0..16 {
            begin(&mut lead, 100 + call, "codex", &json!({"prompt": format!("Number {call}")}));
        }
        let mut answers: Vec<Value> = Vec::new();
        while answers.len() < 16 {
            let told = lead.read().expect("an answer");
            if told["id"].as_u64().is_some_and(|id| id >= 100) {
                answers.push(told);
            }
        }
        for told in &answers {
            let number = told["id"].as_u64().expect("a number") - 100;
            let content = &told["result"]["structuredContent"]["content"];
            assert_eq!(content, &json!(format!("Said: Number {number}")), "{told}\n{}", scene.told());
        }
        assert_eq!(rows(&scene, &[]).len(), 16);
        assert_eq!(lead.close(), Some(0));
        scene.nothing_is_left();
    });
}
