package dev.parley.transport.graphql;

import graphql.ExecutionInput;
import graphql.execution.preparsed.PreparsedDocumentEntry;
import graphql.execution.preparsed.PreparsedDocumentProvider;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;

/**
 * Parses and validates each query text once. Works because values travel as variables, so a client has as many texts as operations; a
 * text beyond {@link #MAX} is parsed each time rather than kept, so that no client can fill the memory.
 */
final class ParsedDocuments implements PreparsedDocumentProvider {
    private static final int MAX = 1_000;

    private final ConcurrentHashMap<String, PreparsedDocumentEntry> parsed = new ConcurrentHashMap<>();

    @Override
    public CompletableFuture<PreparsedDocumentEntry> getDocumentAsync(
            ExecutionInput input, Function<ExecutionInput, PreparsedDocumentEntry> parseAndValidate) {
        PreparsedDocumentEntry known = parsed.get(input.getQuery());
        if (known == null) {
            known = parseAndValidate.apply(input);
            if (parsed.size() < MAX) {
                parsed.put(input.getQuery(), known);
            }
        }
        return CompletableFuture.completedFuture(known);
    }
}
