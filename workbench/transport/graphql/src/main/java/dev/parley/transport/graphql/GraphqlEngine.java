package dev.parley.transport.graphql;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Operation;
import graphql.ErrorType;
import graphql.ExecutionInput;
import graphql.ExecutionResult;
import graphql.GraphQL;
import graphql.GraphQLError;
import graphql.GraphqlErrorBuilder;
import graphql.execution.DataFetcherExceptionHandlerParameters;
import graphql.execution.DataFetcherExceptionHandlerResult;
import graphql.execution.preparsed.NoOpPreparsedDocumentProvider;
import graphql.schema.DataFetchingEnvironment;
import graphql.validation.ValidationError;
import graphql.validation.ValidationErrorType;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import tools.jackson.core.JacksonException;

/**
 * A contract's schema with a handler behind it. Blocks while the handler runs. Every error that leaves it carries a {@link Code} in
 * {@code extensions.code}.
 */
final class GraphqlEngine {
    /** Where GraphQL servers put an error's code. Source: GraphQL specification, section 7.1.2, "extensions". */
    static final String CODE = "code";

    private final Handler handler;
    private final GraphQL graphql;

    GraphqlEngine(Contract contract, Handler handler, boolean parsedOnce) {
        this.handler = handler;
        this.graphql = GraphQL.newGraphQL(
                        new ContractSchema(contract, operation -> env -> reply(operation, env)).schema())
                .defaultDataFetcherExceptionHandler(GraphqlEngine::fault)
                .preparsedDocumentProvider(parsedOnce ? new ParsedDocuments() : NoOpPreparsedDocumentProvider.INSTANCE)
                .build();
    }

    /** The response as the specification writes it: {@code data} and {@code errors}. */
    Map<String, Object> execute(Wire.Request request) {
        ExecutionInput.Builder input = ExecutionInput.newExecutionInput().query(request.query());
        if (request.operationName() != null) {
            input.operationName(request.operationName());
        }
        if (request.variables() != null) {
            input.variables(request.variables());
        }
        ExecutionResult result = graphql.execute(input.build());
        Map<String, Object> response = new LinkedHashMap<>();
        if (!result.getErrors().isEmpty()) {
            response.put(
                    "errors",
                    result.getErrors().stream().map(GraphqlEngine::coded).toList());
        }
        if (result.isDataPresent()) {
            response.put("data", result.getData());
        }
        return response;
    }

    private <Q extends Record, R extends Record> Object reply(Operation<Q, R> operation, DataFetchingEnvironment env) {
        Map<String, Object> sent = env.getArgumentOrDefault(ContractSchema.INPUT, Map.of());
        Q request;
        try {
            request = Wire.JSON.convertValue(sent, operation.request());
        } catch (JacksonException e) {
            throw new CallException(Code.INVALID, e.getOriginalMessage(), e);
        }
        R reply;
        try {
            reply = handler.handle(operation, request);
        } catch (Error e) {
            // graphql-java turns exceptions into GraphQL errors, and nothing else
            throw CallException.of(e);
        }
        return operation.reply().getRecordComponents().length > 0 ? reply : Boolean.TRUE;
    }

    private static CompletableFuture<DataFetcherExceptionHandlerResult> fault(
            DataFetcherExceptionHandlerParameters parameters) {
        CallException fault = CallException.of(parameters.getException());
        GraphQLError error = GraphqlErrorBuilder.newError(parameters.getDataFetchingEnvironment())
                .errorType(ErrorType.DataFetchingException)
                .message("%s", fault.getMessage())
                .extensions(Map.of(CODE, fault.code().name()))
                .build();
        return CompletableFuture.completedFuture(
                DataFetcherExceptionHandlerResult.newResult(error).build());
    }

    private static Map<String, Object> coded(GraphQLError error) {
        Map<String, Object> specified = new LinkedHashMap<>(error.toSpecification());
        Map<String, Object> extensions = new LinkedHashMap<>();
        if (specified.get("extensions") instanceof Map<?, ?> already) {
            already.forEach((key, value) -> extensions.put(String.valueOf(key), value));
        }
        extensions.putIfAbsent(CODE, code(error).name());
        specified.put("extensions", extensions);
        return specified;
    }

    /** For errors that graphql-java found before any handler ran. */
    private static Code code(GraphQLError error) {
        if (error.getErrorType() == ErrorType.InvalidSyntax) {
            return Code.PROTOCOL;
        }
        return error instanceof ValidationError invalid
                        && invalid.getValidationErrorType() == ValidationErrorType.FieldUndefined
                        && List.of("Query", "Mutation").stream()
                                .anyMatch(root -> invalid.getMessage().contains("type '" + root + "'"))
                ? Code.NOT_FOUND
                : Code.INVALID;
    }
}
