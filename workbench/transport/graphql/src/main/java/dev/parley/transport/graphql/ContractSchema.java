package dev.parley.transport.graphql;

import static graphql.schema.FieldCoordinates.coordinates;

import dev.parley.model.BadInput;
import dev.parley.spi.Contract;
import dev.parley.spi.Operation;
import graphql.Scalars;
import graphql.schema.DataFetcher;
import graphql.schema.GraphQLArgument;
import graphql.schema.GraphQLCodeRegistry;
import graphql.schema.GraphQLEnumType;
import graphql.schema.GraphQLFieldDefinition;
import graphql.schema.GraphQLInputObjectField;
import graphql.schema.GraphQLInputObjectType;
import graphql.schema.GraphQLInputType;
import graphql.schema.GraphQLList;
import graphql.schema.GraphQLNamedType;
import graphql.schema.GraphQLNonNull;
import graphql.schema.GraphQLObjectType;
import graphql.schema.GraphQLOutputType;
import graphql.schema.GraphQLScalarType;
import graphql.schema.GraphQLSchema;
import graphql.schema.GraphQLType;
import graphql.schema.GraphQLTypeReference;
import graphql.schema.idl.SchemaPrinter;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;

/**
 * A contract as a GraphQL schema. A record becomes an object type and, where it is sent, an input type named {@code …Input}; a nested
 * record is named after its outer one. Every field is
 * non-null, as in the contracts, except the operations themselves: where one fails, the response says so beside a null.
 *
 * <p>An operation is a field of {@code Query} or {@code Mutation} with one argument, {@code input}; without an argument if its request has
 * no components. A reply without components is {@code true}.
 */
final class ContractSchema {
    /** Name of the one argument of every operation. */
    static final String INPUT = "input";

    private static final Map<Class<?>, GraphQLScalarType> SCALARS = scalars();

    private final GraphQLSchema schema;
    private final Map<String, GraphQLNamedType> types = new TreeMap<>();
    private final GraphQLCodeRegistry.Builder code = GraphQLCodeRegistry.newCodeRegistry();

    /** @param fetcher what brings an operation's reply */
    ContractSchema(Contract contract, Function<Operation<?, ?>, DataFetcher<?>> fetcher) {
        GraphQLObjectType.Builder queries = GraphQLObjectType.newObject().name("Query");
        GraphQLObjectType.Builder mutations = GraphQLObjectType.newObject().name("Mutation");
        boolean anyQuery = false;
        boolean anyMutation = false;
        for (Operation<?, ?> operation : contract.operations()) {
            boolean mutation = operation.kind() == Operation.Kind.MUTATION;
            (mutation ? mutations : queries).field(field(operation));
            code.dataFetcher(coordinates(root(operation), operation.name()), fetcher.apply(operation));
            anyMutation |= mutation;
            anyQuery |= !mutation;
        }
        if (!anyQuery) {
            // a schema without a query is not a schema
            queries.field(
                    GraphQLFieldDefinition.newFieldDefinition().name("contract").type(Scalars.GraphQLString));
            code.dataFetcher(coordinates("Query", "contract"), (DataFetcher<String>) env -> contract.name());
        }
        GraphQLSchema.Builder builder = GraphQLSchema.newSchema().query(queries);
        if (anyMutation) {
            builder.mutation(mutations);
        }
        schema = builder.additionalTypes(Set.copyOf(types.values()))
                .codeRegistry(code.build())
                .build();
    }

    GraphQLSchema schema() {
        return schema;
    }

    /** The schema in GraphQL's schema definition language. */
    String sdl() {
        return new SchemaPrinter(SchemaPrinter.Options.defaultOptions()
                        .includeScalarTypes(true)
                        .includeDirectiveDefinitions(false))
                .print(schema);
    }

    /** {@code Query} or {@code Mutation}. */
    static String root(Operation<?, ?> operation) {
        return operation.kind() == Operation.Kind.MUTATION ? "Mutation" : "Query";
    }

    static String inputName(Class<?> record) {
        return outputName(record) + "Input";
    }

    private static String outputName(Class<?> type) {
        Class<?> outer = type.getEnclosingClass();
        return outer != null && outer.isRecord() ? outputName(outer) + type.getSimpleName() : type.getSimpleName();
    }

    private GraphQLFieldDefinition field(Operation<?, ?> operation) {
        GraphQLFieldDefinition.Builder field =
                GraphQLFieldDefinition.newFieldDefinition().name(operation.name());
        if (operation.request().getRecordComponents().length > 0) {
            field.argument(
                    GraphQLArgument.newArgument().name(INPUT).type(GraphQLNonNull.nonNull(input(operation.request()))));
        }
        return field.type(
                        operation.reply().getRecordComponents().length > 0
                                ? output(operation.reply())
                                : Scalars.GraphQLBoolean)
                .build();
    }

    private GraphQLOutputType output(Type type) {
        if (type instanceof ParameterizedType list && list.getRawType() == List.class) {
            return GraphQLList.list(GraphQLNonNull.nonNull(output(list.getActualTypeArguments()[0])));
        }
        Class<?> plain = plain(type);
        if (!plain.isRecord()) {
            return (GraphQLOutputType) leaf(plain);
        }
        String name = outputName(plain);
        if (!types.containsKey(name)) {
            GraphQLObjectType.Builder object = GraphQLObjectType.newObject().name(name);
            for (RecordComponent component : plain.getRecordComponents()) {
                object.field(GraphQLFieldDefinition.newFieldDefinition()
                        .name(component.getName())
                        .type(GraphQLNonNull.nonNull(output(component.getGenericType()))));
                code.dataFetcher(coordinates(name, component.getName()), new ComponentFetcher(component));
            }
            types.put(name, object.build());
        }
        return GraphQLTypeReference.typeRef(name);
    }

    private GraphQLInputType input(Type type) {
        if (type instanceof ParameterizedType list && list.getRawType() == List.class) {
            return GraphQLList.list(GraphQLNonNull.nonNull(input(list.getActualTypeArguments()[0])));
        }
        Class<?> plain = plain(type);
        if (!plain.isRecord()) {
            return (GraphQLInputType) leaf(plain);
        }
        String name = inputName(plain);
        if (!types.containsKey(name)) {
            GraphQLInputObjectType.Builder object =
                    GraphQLInputObjectType.newInputObject().name(name);
            for (RecordComponent component : plain.getRecordComponents()) {
                object.field(GraphQLInputObjectField.newInputObjectField()
                        .name(component.getName())
                        .type(GraphQLNonNull.nonNull(input(component.getGenericType()))));
            }
            types.put(name, object.build());
        }
        return GraphQLTypeReference.typeRef(name);
    }

    private GraphQLType leaf(Class<?> type) {
        GraphQLScalarType scalar = SCALARS.get(type);
        if (scalar != null) {
            return scalar;
        }
        if (type.isEnum()) {
            String name = outputName(type);
            if (!types.containsKey(name)) {
                GraphQLEnumType.Builder builder = GraphQLEnumType.newEnum().name(name);
                for (Object constant : type.getEnumConstants()) {
                    builder.value(((Enum<?>) constant).name(), constant);
                }
                types.put(name, builder.build());
            }
            return GraphQLTypeReference.typeRef(name);
        }
        throw new BadInput(
                "GraphQL type of " + type.getName(), type, "a record, an enum, List, or one of " + SCALARS.keySet());
    }

    private static Class<?> plain(Type type) {
        if (type instanceof Class<?> plain) {
            return plain;
        }
        throw new BadInput("GraphQL type", type, "a record, an enum, a List of one type, or a scalar");
    }

    private static Map<Class<?>, GraphQLScalarType> scalars() {
        Map<Class<?>, GraphQLScalarType> scalars = new HashMap<>();
        for (Class<?> type : List.of(String.class, java.util.UUID.class)) {
            scalars.put(type, Scalars.GraphQLString);
        }
        for (Class<?> type : List.of(boolean.class, Boolean.class)) {
            scalars.put(type, Scalars.GraphQLBoolean);
        }
        for (Class<?> type : List.of(int.class, Integer.class, short.class, Short.class, byte.class, Byte.class)) {
            scalars.put(type, Scalars.GraphQLInt);
        }
        for (Class<?> type : List.of(float.class, Float.class, double.class, Double.class)) {
            scalars.put(type, Scalars.GraphQLFloat);
        }
        scalars.put(long.class, OwnScalars.LONG);
        scalars.put(Long.class, OwnScalars.LONG);
        scalars.put(byte[].class, OwnScalars.BASE64);
        scalars.put(java.math.BigDecimal.class, OwnScalars.BIG_DECIMAL);
        for (Class<?> type :
                List.of(java.time.LocalDateTime.class, java.time.LocalDate.class, java.time.Instant.class)) {
            scalars.put(type, OwnScalars.isoText(type));
        }
        return Map.copyOf(scalars);
    }
}
