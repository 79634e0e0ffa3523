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
 * A parameter of a method that is called on the classic wire. Parameters are sent in the order of their numbers, so
 * client and server can declare the parameters in different orders.
 *
 * @param position index among the parameters of the method, counted from 0
 * @param number 0 if the parameter is a message that is the entire body. Otherwise the value of the parameter's
 *     {@link Field}, or {@code position + 1} if the parameter has no {@code Field}
 * @param type name of the parameter's type, for people to read
 */
public record ClassicParameter(int position, int number, String type, Codec<Object> codec) {
    /**
     * Returns the parameters of a method in the order in which they are sent.
     *
     * @throws SchemaException if a parameter cannot be mapped, or if its number is not allowed; the exception's text
     *     names what is wrong, for example the method, the parameter or a component
     */
    public static List<ClassicParameter> of(Method method, Codecs codecs) {
        Parameter[] parameters = method.getParameters();
        List<Integer> numbers =
                ParameterNumbers.of(List.of(parameters), parameter -> parameter.getAnnotation(Field.class));
        // the call of parameters(method) also refuses parameter numbers that are not allowed
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
     * Returns whether the parameters have the given numbers, in the same order. A parameter whose number is 0 matches
     * any given number.
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

    /** Returns the number of each parameter, in the order of {@code parameters}. */
    public static List<Integer> numbers(List<ClassicParameter> parameters) {
        return parameters.stream().map(ClassicParameter::number).toList();
    }
}
