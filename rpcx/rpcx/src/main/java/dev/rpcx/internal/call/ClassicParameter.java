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
 * Parameter of a method on the classic wire. Parameters are sent in the order of their numbers, so both sides may
 * declare them in different orders.
 *
 * @param position index among the parameters of the method, counted from 0
 * @param number value of the parameter's {@link Field}; without one, its position, counted from 1; 0 if the parameter
 *     is a message that is the body itself
 * @param type name of the parameter's type, for people
 */
public record ClassicParameter(int position, int number, String type, Codec<Object> codec) {
    /**
     * Returns the parameters of a method in the order in which they are sent.
     *
     * @throws SchemaException if a parameter cannot be mapped; the exception's text names the method
     */
    public static List<ClassicParameter> of(Method method, Codecs codecs) {
        Parameter[] parameters = method.getParameters();
        List<Integer> numbers =
                ParameterNumbers.of(List.of(parameters), parameter -> parameter.getAnnotation(Field.class));
        // this call also refuses parameter numbers that are not allowed
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
     * Says whether the parameters have these numbers, in the same order. A parameter without a number fits any number.
     *
     * @param numbers one number for each parameter
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

    /** Returns the numbers of the parameters, in the order of the parameters. */
    public static List<Integer> numbers(List<ClassicParameter> parameters) {
        return parameters.stream().map(ClassicParameter::number).toList();
    }
}
