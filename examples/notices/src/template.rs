use serde_json::{Map, Value, json};

/// A text with places to fill in:
///
/// ```text
/// ---
/// title: Outage notice
/// description: Writes the notice that customers get.
/// service: What is affected, as customers know it.
/// ---
/// We are looking into trouble with {{service}}.
/// ```
///
/// Lines of the head other than `title` and `description` name the places, each with what belongs there.
pub struct Template {
    pub title: Option<String>,
    pub description: Option<String>,
    places: Vec<(String, String)>,
    body: String,
}

impl Template {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (head, body) = text
            .strip_prefix("---\n")
            .and_then(|rest| rest.split_once("\n---\n"))
            .ok_or("it has no head between two lines of ---")?;
        let mut template = Template { title: None, description: None, places: Vec::new(), body: body.trim_end().into() };
        for line in head.lines() {
            let (key, value) = line.split_once(':').ok_or_else(|| format!("{line:?} is not a name, a colon and a text"))?;
            let value = value.trim().to_string();
            match key.trim() {
                "title" => template.title = Some(value),
                "description" => template.description = Some(value),
                place => template.places.push((place.into(), value)),
            }
        }
        Ok(template)
    }

    /// JSON Schema: one text for each place, and nothing else.
    pub fn input_schema(&self) -> String {
        let properties: Map<String, Value> = self
            .places
            .iter()
            .map(|(name, what)| (name.clone(), json!({ "type": "string", "description": what })))
            .collect();
        let required: Vec<&str> = self.places.iter().map(|(name, _)| name.as_str()).collect();
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false }).to_string()
    }

    /// The body with its places filled. What is filled in is not looked at for places again.
    pub fn fill(&self, arguments: &str) -> Result<String, String> {
        let given: Map<String, Value> = serde_json::from_str(arguments).map_err(|error| error.to_string())?;
        let mut filled = String::new();
        let mut rest = self.body.as_str();
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}").ok_or("the template has a {{ without }}")?;
            let value = given.get(name.trim()).and_then(Value::as_str);
            filled.push_str(before);
            filled.push_str(value.ok_or_else(|| format!("nothing was given for {}", name.trim()))?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }
}
