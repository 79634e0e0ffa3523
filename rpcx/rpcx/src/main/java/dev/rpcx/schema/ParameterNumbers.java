package dev.rpcx.schema;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Which numbers a method's parameters have, alike for the annotation processor and for a start. */
public final class ParameterNumbers {
    private ParameterNumbers() {}

    /** Those of {@link Field}, and of the places of those that have none. */
    public static <T> List<Integer> of(List<T> parameters, Function<T, @Nullable Field> annotation) {
        List<Integer> numbers = new ArrayList<>();
        for (T parameter : parameters) {
            Field field = annotation.apply(parameter);
            numbers.add(field == null ? numbers.size() + 1 : field.value());
        }
        return numbers;
    }

    /** Says that a class numbers the parameters of a method otherwise than an interface that it implements. */
    public static String differ(String method, List<Integer> numbers, String declaring, List<Integer> declared) {
        return method + ": its parameters have the numbers " + numbers + ", and " + declared + " in " + declaring
                + " (expected: the same @Field on both)";
    }
}
