package dev.parley.transport.graphql;

import dev.parley.spi.Operation;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;

/**
 * The text of the query that asks an operation for every field of its reply. Which fields are asked for is the client's choice in GraphQL;
 * a call of the workbench needs all of them, since the whole reply is compared.
 */
final class QueryText {
    private final StringBuilder text = new StringBuilder();

    private QueryText() {}

    static String of(Operation<?, ?> operation) {
        QueryText query = new QueryText();
        boolean sends = operation.request().getRecordComponents().length > 0;
        query.text
                .append(operation.kind() == Operation.Kind.MUTATION ? "mutation " : "query ")
                .append(operation.name());
        if (sends) {
            query.text
                    .append("($input: ")
                    .append(ContractSchema.inputName(operation.request()))
                    .append("!)");
        }
        query.text.append(" { ").append(operation.name());
        if (sends) {
            query.text.append("(input: $input)");
        }
        query.select(operation.reply());
        return query.text.append(" }").toString();
    }

    private void select(Type type) {
        if (type instanceof ParameterizedType list) {
            select(list.getActualTypeArguments()[0]);
        } else if (type instanceof Class<?> record && record.isRecord() && record.getRecordComponents().length > 0) {
            text.append(" {");
            for (RecordComponent component : record.getRecordComponents()) {
                text.append(' ').append(component.getName());
                select(component.getGenericType());
            }
            text.append(" }");
        }
    }
}
