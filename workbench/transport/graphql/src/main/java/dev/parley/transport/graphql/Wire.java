package dev.parley.transport.graphql;

import com.fasterxml.jackson.annotation.JsonSetter;
import com.fasterxml.jackson.annotation.Nulls;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.json.JsonMapper;

/** What goes over HTTP: the JSON of the specification, GraphQL over HTTP, sections 5 and 7. */
final class Wire {
    /** What was sent may be numbers of any kind: decimals keep their scale until the schema says what they are. */
    static final JsonMapper JSON = JsonMapper.builder()
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .build();

    /** For replies that were not asked for whole: what is absent is empty, not null. */
    static final JsonMapper PARTIAL = JSON.rebuild()
            .withConfigOverride(
                    String.class, text -> text.setNullHandling(JsonSetter.Value.forValueNulls(Nulls.AS_EMPTY)))
            .withConfigOverride(
                    List.class, list -> list.setNullHandling(JsonSetter.Value.forValueNulls(Nulls.AS_EMPTY)))
            .build();

    static final String PATH = "/graphql";

    static final String REQUEST_TYPE = "application/json";

    /** Source: GraphQL over HTTP, section 4.1; the older type is for servers that came before it. */
    static final String ACCEPTED = "application/graphql-response+json, application/json;q=0.9";

    static final String REPLY_TYPE = "application/graphql-response+json";

    private Wire() {}

    /** @param variables by name */
    record Request(
            String query,
            @Nullable String operationName,
            @Nullable Map<String, Object> variables) {}

    /** @param data the reply under the operation's name */
    record Reply<R>(@Nullable Map<String, R> data, @Nullable List<Fault> errors) {}

    record Fault(String message, @Nullable Map<String, Object> extensions) {}
}
