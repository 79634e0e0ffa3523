package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Finds the numbers of a method's parameters, in the same way for the annotation processor and at start. */
public final class ParameterNumbers {
    private ParameterNumbers() {}

    /**
     * Returns for each parameter, in their order, the number of its {@link Field}, or its position, counted from 1, if
     * it has none.
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
     * Returns the text of the error for a class that gives the parameters of a method other numbers than an interface
     * that it implements.
     */
    public static String differ(String method, List<Integer> numbers, String declaring, List<Integer> declared) {
        return method + ": its parameters have the numbers " + numbers + ", and " + declared + " in " + declaring
                + " (expected: the same @Field on both)";
    }
}
