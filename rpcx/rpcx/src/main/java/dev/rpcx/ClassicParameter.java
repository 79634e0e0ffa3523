package dev.rpcx;

import dev.rpcx.codec.Codec;
import dev.rpcx.codec.Codecs;
import dev.rpcx.schema.Field;
import dev.rpcx.schema.ParameterNumbers;
import dev.rpcx.schema.SchemaException;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * A parameter of a method as the classic wire carries it, which has no numbers: in their order, so that it is the same
 * on both sides wherever the parameters stand in the methods.
 *
 * @param place where it stands among the method's parameters, from 0
 * @param type text for people
 */
record ClassicParameter(int place, String type, Codec<Object> codec) {
    /**
     * Those of a method in the order in which they go.
     *
     * @throws SchemaException one of them cannot be mapped; its text names the method
     */
    static List<ClassicParameter> of(Method method, Codecs codecs) {
        Parameter[] parameters = method.getParameters();
        List<Integer> numbers =
                ParameterNumbers.of(List.of(parameters), parameter -> parameter.getAnnotation(Field.class));
        List<ClassicParameter> all = new ArrayList<>();
        for (int i = 0; i < parameters.length; i++) {
            all.add(new ClassicParameter(
                    i, parameters[i].getParameterizedType().getTypeName(), codecs.value(parameters[i])));
        }
        all.sort(Comparator.comparing(parameter -> numbers.get(parameter.place)));
        return List.copyOf(all);
    }
}
