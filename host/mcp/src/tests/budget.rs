//! What the tools cost an agent's context, measured on the real list.

use serde_json::{Value, json};

use super::World;
use super::web::Web;

async fn listed(world: &World) -> Vec<Value> {
    let client = world.client("a-client").await;
    let tools = client.0.list_all_tools().await.expect("listed");
    tools.iter().map(|tool| serde_json::to_value(tool).expect("a tool is JSON")).collect()
}

/// The size in bytes of everything that a model reads about a tool before it calls it.
pub(super) fn cost(tool: &Value) -> usize {
    let read = json!({"name": tool["name"], "description": tool["description"], "input_schema": tool["inputSchema"]});
    read.to_string().len()
}

#[tokio::test]
async fn the_core_tools_cost_at_most_800_tokens() {
    let tools = listed(&World::new()).await;
    let bytes: usize = tools.iter().map(cost).sum();
    assert!(bytes / 4 <= 800, "{bytes} bytes are {} tokens", bytes / 4);
    assert_eq!(tools.len(), 8);
}

#[tokio::test]
async fn the_list_of_tools_is_as_reviewed() {
    let tools = listed(&World::new()).await;
    insta::assert_json_snapshot!(tools);
}

#[tokio::test]
async fn a_client_with_nothing_else_is_shown_where_its_key_goes() {
    let world = World::new();
    for tool in listed(&world).await {
        assert!(tool["inputSchema"]["properties"]["agent_key"].is_null(), "{tool}");
    }
    let web = Web::start(&world).await;
    let answer = web.stateless("tools/list", json!({})).await;
    let tools = answer["result"]["tools"].as_array().expect("a list").clone();
    assert_eq!(tools.len(), 8);
    for tool in tools {
        assert!(tool["inputSchema"]["properties"]["agent_key"].is_object(), "{tool}");
    }
}
