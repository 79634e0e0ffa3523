package dev.parley.transport.graphql;

import dev.parley.spi.Operation;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.util.List;

/** The text of the query that asks an operation for every field of its reply, or only for those that its client reads. */
final class QueryText {
    private final StringBuilder text = new StringBuilder();

    /** Dotted names; empty for all. */
    private final List<String> read;

    private QueryText(List<String> read) {
        this.read = read;
    }

    static String of(Operation<?, ?> operation) {
        return of(operation, List.of());
    }

    /** @param read dotted names of the fields that are asked for; empty for all */
    static String of(Operation<?, ?> operation, List<String> read) {
        QueryText query = new QueryText(read);
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
        query.select(operation.reply(), "");
        return query.text.append(" }").toString();
    }

    private void select(Type type, String at) {
        if (type instanceof ParameterizedType list) {
            select(list.getActualTypeArguments()[0], at);
        } else if (type instanceof Class<?> record && record.isRecord() && record.getRecordComponents().length > 0) {
            text.append(" {");
            for (RecordComponent component : record.getRecordComponents()) {
                String name = at + component.getName();
                if (isAsked(name)) {
                    text.append(' ').append(component.getName());
                    select(component.getGenericType(), name + ".");
                }
            }
            text.append(" }");
        }
    }

    private boolean isAsked(String name) {
        return read.isEmpty()
                || read.stream()
                        .anyMatch(field ->
                                field.equals(name) || field.startsWith(name + ".") || name.startsWith(field + "."));
    }
}
