package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Finds the field numbers of a method's parameters. The annotation processor, the client, the server and the schema
 * tool all use this class, so that they find the same numbers.
 */
public final class ParameterNumbers {
    private ParameterNumbers() {}

    /**
     * Returns the field numbers of the parameters, in the order of the parameters. A parameter with a {@link Field} has
     * the number of the annotation. The number of any other parameter is its position, counted from 1.
     */
    public static <T> List<Integer> of(List<T> parameters, Function<T, @Nullable Field> annotation) {
        List<Integer> numbers = new ArrayList<>();
        for (T parameter : parameters) {
            Field field = annotation.apply(parameter);
            numbers.add(field == null ? numbers.size() + 1 : field.value());
        }
        return numbers;
    }

    /**
     * Returns the text of the error for a method whose parameters have different numbers in a class and in an interface
     * that the class implements.
     */
    public static String differ(String method, List<Integer> numbers, String declaring, List<Integer> declared) {
        return method + ": its parameters have the numbers " + numbers + ", and " + declared + " in " + declaring
                + " (expected: the same @Field on both)";
    }
}
