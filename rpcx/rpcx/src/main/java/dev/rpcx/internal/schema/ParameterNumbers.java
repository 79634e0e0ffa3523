package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Finds the numbers of a method's parameters. The annotation processor uses this class at build time, and client,
 * server and schema tool use it at run time, so that all find the same numbers.
 */
public final class ParameterNumbers {
    private ParameterNumbers() {}

    /**
     * Returns the numbers of the parameters, in the order of the parameters: the number in the parameter's
     * {@link Field} or, without one, the position, counted from 1.
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
     * Returns the text of the error for a method whose parameters have other numbers in a class than in an interface
     * that the class implements.
     */
    public static String differ(String method, List<Integer> numbers, String declaring, List<Integer> declared) {
        return method + ": its parameters have the numbers " + numbers + ", and " + declared + " in " + declaring
                + " (expected: the same @Field on both)";
    }
}
