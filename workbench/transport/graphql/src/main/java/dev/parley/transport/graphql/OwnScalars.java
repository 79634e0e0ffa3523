package dev.parley.transport.graphql;

import graphql.GraphQLContext;
import graphql.execution.CoercedVariables;
import graphql.language.FloatValue;
import graphql.language.IntValue;
import graphql.language.StringValue;
import graphql.language.Value;
import graphql.schema.Coercing;
import graphql.schema.CoercingParseLiteralException;
import graphql.schema.CoercingParseValueException;
import graphql.schema.GraphQLScalarType;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * What GraphQL's five scalars cannot hold: 64-bit integers, decimals that keep their scale, times. A number comes as a JSON number, a time
 * as ISO-8601 text.
 */
final class OwnScalars {
    static final GraphQLScalarType LONG = GraphQLScalarType.newScalar()
            .name("Long")
            .description("A 64-bit signed integer.")
            .coercing(new LongCoercing())
            .build();

    static final GraphQLScalarType BIG_DECIMAL = GraphQLScalarType.newScalar()
            .name("BigDecimal")
            .description("A decimal of any length; 1.0 and 1.00 differ.")
            .coercing(new BigDecimalCoercing())
            .build();

    static final GraphQLScalarType BASE64 = GraphQLScalarType.newScalar()
            .name("Base64")
            .description("Bytes, which JSON has no type for: base64 as in RFC 4648, section 4.")
            .coercing(new TextCoercing("Base64"))
            .build();

    private OwnScalars() {}

    /** A type of {@code java.time} as text. */
    static GraphQLScalarType isoText(Class<?> type) {
        return GraphQLScalarType.newScalar()
                .name(type.getSimpleName())
                .description("As java.time." + type.getSimpleName() + ", ISO-8601.")
                .coercing(new TextCoercing(type.getSimpleName()))
                .build();
    }

    private static final class LongCoercing implements Coercing<Long, Long> {
        @Override
        public @Nullable Long serialize(Object value, GraphQLContext context, Locale locale) {
            return (Long) value;
        }

        @Override
        public Long parseValue(Object input, GraphQLContext context, Locale locale) {
            return switch (input) {
                case Long whole -> whole;
                case Integer whole -> whole.longValue();
                default -> throw new CoercingParseValueException("Long: " + input + " (expected: a 64-bit integer)");
            };
        }

        @Override
        public Long parseLiteral(Value<?> literal, CoercedVariables variables, GraphQLContext context, Locale locale) {
            if (literal instanceof IntValue whole && fits(whole.getValue())) {
                return whole.getValue().longValue();
            }
            throw new CoercingParseLiteralException("Long: " + literal + " (expected: a 64-bit integer)");
        }

        private static boolean fits(BigInteger value) {
            return value.bitLength() < Long.SIZE;
        }
    }

    private static final class BigDecimalCoercing implements Coercing<BigDecimal, BigDecimal> {
        @Override
        public @Nullable BigDecimal serialize(Object value, GraphQLContext context, Locale locale) {
            return (BigDecimal) value;
        }

        @Override
        public BigDecimal parseValue(Object input, GraphQLContext context, Locale locale) {
            return switch (input) {
                case BigDecimal decimal -> decimal;
                case Integer whole -> BigDecimal.valueOf(whole);
                case Long whole -> BigDecimal.valueOf(whole);
                case BigInteger whole -> new BigDecimal(whole);
                default -> throw new CoercingParseValueException("BigDecimal: " + input + " (expected: a number)");
            };
        }

        @Override
        public BigDecimal parseLiteral(
                Value<?> literal, CoercedVariables variables, GraphQLContext context, Locale locale) {
            return switch (literal) {
                case IntValue whole -> new BigDecimal(whole.getValue());
                case FloatValue decimal -> decimal.getValue();
                default -> throw new CoercingParseLiteralException("BigDecimal: " + literal + " (expected: a number)");
            };
        }
    }

    /** Leaves reading and writing of the text to Jackson, as in every technology that speaks JSON. */
    private record TextCoercing(String name) implements Coercing<String, Object> {
        @Override
        public @Nullable Object serialize(Object value, GraphQLContext context, Locale locale) {
            return value;
        }

        @Override
        public String parseValue(Object input, GraphQLContext context, Locale locale) {
            if (input instanceof String text) {
                return text;
            }
            throw new CoercingParseValueException(name + ": " + input + " (expected: text)");
        }

        @Override
        public String parseLiteral(
                Value<?> literal, CoercedVariables variables, GraphQLContext context, Locale locale) {
            if (literal instanceof StringValue text) {
                return String.valueOf(text.getValue());
            }
            throw new CoercingParseLiteralException(name + ": " + literal + " (expected: text)");
        }
    }
}
