package dev.rpcx.internal.call;

import dev.rpcx.codec.Codec;
import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.ParameterNumbers;
import dev.rpcx.schema.Field;
import dev.rpcx.schema.SchemaException;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Parameter of a method as the classic wire carries it. Parameters are sent in the order of their numbers, so that the
 * order is the same on both sides, wherever the parameters stand in the methods.
 *
 * @param place position among the method's parameters, from 0
 * @param number value of {@link Field}, or the position from 1; 0 for a message of its own, which has none
 * @param type name of the parameter's type, for people
 */
public record ClassicParameter(int place, int number, String type, Codec<Object> codec) {
    /**
     * Returns the parameters of a method in the order in which they are sent.
     *
     * @throws SchemaException if a parameter cannot be mapped; the exception's text names the method
     */
    public static List<ClassicParameter> of(Method method, Codecs codecs) {
        Parameter[] parameters = method.getParameters();
        List<Integer> numbers =
                ParameterNumbers.of(List.of(parameters), parameter -> parameter.getAnnotation(Field.class));
        // this also refuses numbers that are not allowed
        boolean isWhole = codecs.schema().parameters(method).kind() != MessageType.Kind.PARAMETERS;
        List<ClassicParameter> all = new ArrayList<>();
        for (int i = 0; i < parameters.length; i++) {
            all.add(new ClassicParameter(
                    i,
                    isWhole ? 0 : numbers.get(i),
                    parameters[i].getParameterizedType().getTypeName(),
                    codecs.value(parameters[i])));
        }
        all.sort(Comparator.comparing(ClassicParameter::number));
        return List.copyOf(all);
    }

    /**
     * Says whether the parameters have these numbers. A parameter without a number fits any.
     *
     * @param numbers as many as there are parameters
     */
    public static boolean have(List<ClassicParameter> parameters, List<Integer> numbers) {
        for (int i = 0; i < numbers.size(); i++) {
            int number = parameters.get(i).number;
            if (number != 0 && numbers.get(i) != number) {
                return false;
            }
        }
        return true;
    }

    /** Returns the numbers of the parameters in their order. */
    public static List<Integer> numbers(List<ClassicParameter> parameters) {
        return parameters.stream().map(ClassicParameter::number).toList();
    }
}
