        end
